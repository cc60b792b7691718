"""Decompresses a POST's body, within limits on the decompressed size."""

import zlib
from collections.abc import Callable
from typing import Final

import brotli
import msgspec
import zstandard

from services.collector.intake.post import InvalidInput, Post, Rules

_GZIP_MAGIC: Final = b"\x1f\x8b"
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_GZIP_WBITS: Final = 16 + zlib.MAX_WBITS
#: The ratio does not limit bodies that decompress to less: ten similar events compress very well.
RATIO_FREE_BYTES: Final = 64 * 1024
#: The largest window of a zstd frame.
ZSTD_WINDOW_BYTES_MAX: Final = 8 * 1024 * 1024
#: A block of 128 KiB may take four bytes: so many bytes of input are at most some 2 MiB of output.
_ZSTD_PIECE_BYTES: Final = 64

_Unpack = Callable[[bytes, int], bytes]


def unpacked(post: Post, rules: Rules) -> bytes:
    """The body, decompressed where it is compressed; raises `InvalidInput` when it is too large or broken.

    gzip and zstd are known by their first bytes: some clients declare gzip and send plain text, others the reverse.
    """
    body, bytes_max = post.body, rules.body_bytes_max
    if post.unpacked is not None:
        return post.unpacked
    if not post.whole or len(body) > bytes_max:
        raise InvalidInput("too_large", f"the body is longer than {bytes_max} bytes; its beginning is kept")
    unpack = _unpacker(body, post.content_encoding.strip().lower())
    if unpack is None:
        return body
    of_ratio = max(len(body) * rules.unpack_ratio_max, RATIO_FREE_BYTES)
    data = unpack(body, min(bytes_max, of_ratio) + 1)
    if len(data) > bytes_max:
        raise InvalidInput("too_large", f"the body unpacks to more than {bytes_max} bytes")
    if len(data) > of_ratio:
        raise InvalidInput("too_large", f"the body unpacks to more than {rules.unpack_ratio_max} times its size")
    return data


def unpacked_bytes_max(post: Post, rules: Rules) -> int:
    """The possible size of the decompressed body, in addition to the body; 0 if it is not compressed. Decompresses nothing."""
    try:
        is_packed = _unpacker(post.body, post.content_encoding.strip().lower()) is not None
    except InvalidInput:
        is_packed = False
    of_ratio = max(len(post.body) * rules.unpack_ratio_max, RATIO_FREE_BYTES)
    return min(rules.body_bytes_max, of_ratio) if is_packed else 0


def small(post: Post, bytes_max: int) -> Post | None:
    """The POST, unpacked if need be, where its body takes at most so many bytes then; None where it takes more.

    `bytes_max` is at most `RATIO_FREE_BYTES`. A body that is broken is small: the parser refuses it.
    """
    if len(post.body) > bytes_max:
        return None if post.whole else post
    try:
        unpack = _unpacker(post.body, post.content_encoding.strip().lower())
        if unpack is None:
            return post
        data = unpack(post.body, bytes_max + 1)
    except InvalidInput:
        return post
    return msgspec.structs.replace(post, unpacked=data) if len(data) <= bytes_max else None


def beginning(post: Post, rules: Rules, bytes_max: int) -> bytes:
    """The first bytes of the body, unpacked; empty for a body that is broken."""
    data = post.body if post.unpacked is None else post.unpacked
    if post.unpacked is not None or not unpacked_bytes_max(post, rules):
        return data[:bytes_max]
    unpack = _unpacker(post.body, post.content_encoding.strip().lower())
    assert unpack is not None
    try:
        return unpack(post.body, bytes_max)[:bytes_max]
    except InvalidInput:
        return b""


def _unpacker(body: bytes, encoding: str) -> _Unpack | None:
    if body.startswith(_GZIP_MAGIC):
        return _gunzip
    if body.startswith(_ZSTD_MAGIC):
        return _unzstd
    if encoding in {"", "identity", "gzip", "x-gzip", "zstd"}:
        return None
    if encoding == "deflate":
        return _inflate
    if encoding == "br":
        return _unbrotli
    raise InvalidInput("undecodable", f"content encoding {encoding[:40]!r} is not gzip, deflate, br or zstd")


def _gunzip(body: bytes, bytes_max: int) -> bytes:
    return _zlib(body, _GZIP_WBITS, bytes_max)


def _inflate(body: bytes, bytes_max: int) -> bytes:
    # The standard means zlib's format; some clients send the bare stream.
    is_zlib = len(body) > 1 and body[0] & 0x0F == 8 and (body[0] << 8 | body[1]) % 31 == 0
    return _zlib(body, zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS, bytes_max)


def _zlib(body: bytes, wbits: int, bytes_max: int) -> bytes:
    inflater = zlib.decompressobj(wbits)
    try:
        data = inflater.decompress(body, bytes_max)
    except zlib.error as error:
        raise _broken(error) from error
    return _whole(data, bytes_max, ended=inflater.eof and not inflater.unused_data)


def _unbrotli(body: bytes, bytes_max: int) -> bytes:
    inflater = brotli.Decompressor()
    data = b""
    try:
        data = inflater.process(body, output_buffer_limit=bytes_max)
        while len(data) < bytes_max and (more := inflater.process(b"", output_buffer_limit=bytes_max - len(data))):
            data += more
    except brotli.error as error:
        raise _broken(error) from error
    return _whole(data, bytes_max, ended=inflater.is_finished())


def _unzstd(body: bytes, bytes_max: int) -> bytes:
    inflater = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX).decompressobj()
    # Read by the piece: the whole at once would be unpacked before its size can be seen.
    pieces, size = [], 0
    try:
        for begin in range(0, len(body), _ZSTD_PIECE_BYTES):
            piece = inflater.decompress(body[begin : begin + _ZSTD_PIECE_BYTES])
            pieces.append(piece)
            size += len(piece)
            if size >= bytes_max:
                break
    except zstandard.ZstdError as error:
        raise _broken(error) from error
    return _whole(b"".join(pieces)[:bytes_max], bytes_max, ended=inflater.eof and not inflater.unused_data)


def _whole(data: bytes, bytes_max: int, *, ended: bool) -> bytes:
    if len(data) < bytes_max and not ended:
        raise InvalidInput("undecodable", "the compressed body is cut short or followed by something else")
    return data


def _broken(error: Exception) -> InvalidInput:
    return InvalidInput("undecodable", f"the compressed body is broken: {error}")
