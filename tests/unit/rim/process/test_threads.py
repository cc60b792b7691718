"""A thread that dies is not passed over."""

import threading
from collections.abc import Iterator

import pytest

from services.rim.process.threads import ThreadDied, Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    before = threading.excepthook
    watching = Threads()
    watching.watch()
    yield watching
    threading.excepthook = before


def run(name: str, error: BaseException | None) -> None:
    def work() -> None:
        if error is not None:
            raise error

    thread = threading.Thread(target=work, name=name)
    thread.start()
    thread.join(10)


def test_the_first_thread_that_dies_is_named_with_its_error(threads: Threads) -> None:
    run("good", None)
    threads.check()
    run("ears", ValueError("deaf"))
    run("voice", ValueError("mute"))
    with pytest.raises(ThreadDied, match="thread ears died: ValueError: deaf"):
        threads.check()
