"""RocksDB's options, and the memory that all stores of a slot share."""

from typing import Final

from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, WriteBufferManager

_BLOOM_BITS: Final = 10


class Memory:
    """What all stores of a slot share: block cache and write buffers, in bytes."""

    def __init__(self, *, block_cache_bytes: int, write_buffer_bytes: int) -> None:
        self.cache = Cache(block_cache_bytes)
        # Never stall: only a store's own writes make it flush, so one that waits for the memory of an idle one waits for ever.
        self.write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            write_buffer_bytes, False, self.cache
        )


def options_of(memory: Memory) -> Options:
    """The options of a store that shares this memory."""
    table = BlockBasedOptions()
    table.set_block_cache(memory.cache)
    table.set_bloom_filter(_BLOOM_BITS, False)
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_write_buffer_manager(memory.write_buffers)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_atomic_flush(True)
    options.set_max_open_files(64)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1_000_000)
    # A manifest has bounds of keys, deleted ones too, until the next one is begun.
    options.set_max_manifest_file_size(65_536)
    return options
