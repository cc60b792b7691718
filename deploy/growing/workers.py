"""Workers: processes that copy and move partitions. Decoding holds the interpreter, so threads would not do.

A worker does what the command says through its pipe, and ends when the command is gone. It answers with what it has done, or with
the error that ended it.
"""

import multiprocessing
from collections.abc import Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import KafkaException

from deploy.growing.growth import Growing, growing_of
from services.processor.engine.division import CannotGrow
from services.processor.engine.state.rows import NewerFormat
from services.processor.runtime.kafka.reading import ReadingFailed
from services.processor.runtime.operations.growing import Moved, Source
from services.rim.process.crash_points import CrashPoints

_END_SECONDS: Final = 5.0


class Killed(RuntimeError):
    """A worker is gone without a word."""


class Copied(NamedTuple):
    """Rows of a partition that were copied at first."""

    partition: int
    rows: int


class Failed(NamedTuple):
    """What ended a worker."""

    why: str


class Workers:
    """The processes of one command. Each has its share of the partitions, whose rows that move it keeps in memory."""

    def __init__(self, growing: Growing, partitions: list[int], processes: int) -> None:
        self._growing = growing
        number = min(processes, len(partitions))
        self._shares = [partitions[at::number] for at in range(number)]
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []

    def __enter__(self) -> Self:
        # Librdkafka does not survive a fork.
        context = multiprocessing.get_context("spawn")
        topic = self._growing.application.inputs[0].name
        for share in self._shares:
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(there, topic, self._growing.partitions, share), daemon=True)
            process.start()
            # The other end is the worker's alone: else its death would not end the pipe.
            there.close()
            self._pipes.append(here)
            self._processes.append(process)
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join(_END_SECONDS)
            if process.is_alive():
                process.kill()

    def copied(self, *, is_silent: bool) -> Iterator[Copied]:
        """Copies every partition; from then on the workers follow."""
        yield from self._said("copy" if not is_silent else "copy silently", Copied)

    def moved(self) -> Iterator[Moved]:
        """Moves every partition."""
        yield from self._said("move", Moved)

    def forget(self) -> None:
        """Deletes all copies."""
        for _ in self._said("forget", Copied):
            pass

    def _said(self, order: str, kind: type[Any]) -> Iterator[Any]:
        """Gives an order; the answers, one for each partition. Raises `Killed`, `CannotGrow`."""
        left = {}
        for pipe, share in zip(self._pipes, self._shares, strict=True):
            left[pipe] = len(share)
            try:
                pipe.send(order)
            except (BrokenPipeError, ConnectionError) as error:
                raise Killed from error
        while left:
            for ready in wait(list(left)):
                pipe = next(one for one in left if one is ready)
                try:
                    answer = pipe.recv()
                except (EOFError, ConnectionError) as error:
                    raise Killed from error
                if isinstance(answer, Failed):
                    raise CannotGrow(answer.why)
                yield kind(*answer)
                left[pipe] -= 1
                if not left[pipe]:
                    del left[pipe]


def _work(pipe: Connection, topic: str, partitions: int, share: list[int]) -> None:
    try:
        _obey(pipe, topic, partitions, share)
    except (EOFError, ConnectionError):
        return
    except (CannotGrow, ReadingFailed, NewerFormat) as problem:
        _fail(pipe, str(problem))
    except KafkaException as problem:
        _fail(pipe, f"{problem.args[0].str()}; run it again")


def _obey(pipe: Connection, topic: str, partitions: int, share: list[int]) -> None:
    growing = growing_of(topic, partitions)
    points = CrashPoints(growing.settings.crash_at)
    found = [Source(growing.settings, growing.application, number, partitions, points) for number in share]
    is_copied = False
    while True:
        while is_copied and not pipe.poll():
            for source in found:
                source.follow()
        order = pipe.recv()
        for source in found:
            if order == "move":
                pipe.send(tuple(source.move()))
            elif order == "forget":
                source.forget()
                pipe.send((source.partition, 0))
            else:
                pipe.send((source.partition, source.copy(is_silent=order == "copy silently")))
        is_copied = order.startswith("copy")


def _fail(pipe: Connection, why: str) -> None:
    try:
        pipe.send(Failed(why))
    except (BrokenPipeError, ConnectionError):
        return
