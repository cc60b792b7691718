"""A proxy of TCP connections that can hang: it accepts, reads nothing and answers nothing, as a broker that has lost its disk."""

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, Final

from deploy.local.ports import free_port

PIECE_BYTES: Final = 65_536
HOST: Final = "127.0.0.1"


class HangingProxy:
    """Passes connections on to `target_port` of this machine. It runs on a thread of its own until `close`."""

    def __init__(self, target_port: int) -> None:
        self.port: Final = free_port()
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=f"proxy-{self.port}", daemon=True)
        self._tasks: set[asyncio.Task[None]] = set()
        #: Of connections that are open, both ways.
        self._writers: set[asyncio.StreamWriter] = set()

    def start(self) -> None:
        """Begins to listen."""
        self._thread.start()
        self._run(self._listen())

    def hang(self) -> None:
        """From its return on nothing passes; connections stay open, and new ones are accepted."""
        self._run(self._let(is_flowing=False))

    def resume(self) -> None:
        """What waits passes, and all that comes."""
        self._run(self._let(is_flowing=True))

    def close(self) -> None:
        """Ends every connection."""
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _let(self, *, is_flowing: bool) -> None:
        if is_flowing:
            self._flows.set()
        else:
            self._flows.clear()

    async def _listen(self) -> None:
        self._flows = asyncio.Event()
        self._flows.set()
        self._server = await asyncio.start_server(self._accepted, HOST, self.port)

    async def _end(self) -> None:
        # A connection that is just accepted begins in the next turn of the loop, and only while there is a server: else it
        # would be closed by nobody.
        for listening in self._server.sockets:
            self._loop.remove_reader(listening.fileno())
        await asyncio.sleep(0)
        self._server.close()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        # What is still to be sent is sent nowhere: else the connection would stay open, without a loop.
        for writer in self._writers:
            writer.transport.abort()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        task = asyncio.ensure_future(self._pass(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            await self._flows.wait()
            there = await asyncio.open_connection(HOST, self._target_port)
            self._writers.add(there[1])
            pumps = [asyncio.ensure_future(one) for one in (self._pump(reader, there[1]), self._pump(there[0], writer))]
            try:
                # A side that closes ends both, as it does without a proxy.
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for pump in pumps:
                    pump.cancel()
            await self._close(there[1])
        await self._close(writer)

    async def _close(self, writer: asyncio.StreamWriter) -> None:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        self._writers.discard(writer)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while piece := await reader.read(PIECE_BYTES):
                await self._flows.wait()
                writer.write(piece)
                await writer.drain()
