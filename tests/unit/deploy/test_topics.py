"""The answer of `python -m deploy.topics` while brokers do not know yet what it has changed.

`tests/integration/deploy/test_broker.py` has the command on a broker.
"""

from collections.abc import Iterable

import pytest

from deploy import topics as command
from services.rim.kafka.connection import TopicsWrong
from shared import topics
from shared.settings import Settings


class Brokers:
    """They know what is declared after some questions."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, mended: list[str], late: int) -> None:
        self.asked = 0
        self._late = late
        monkeypatch.setattr(command, "_RETRY_SECONDS", 0.0)
        monkeypatch.setattr(command, "_present", lambda *_: {topic.name for topic in topics.ALL})
        monkeypatch.setattr(command, "mend_topics", lambda *_: mended)
        monkeypatch.setattr(command, "verify_topics", self._verify)

    def _verify(self, settings: Settings, declared: Iterable[object]) -> None:
        self.asked += 1
        if self.asked <= self._late:
            raise TopicsWrong("topic beacons has message.timestamp.type=CreateTime")


@pytest.mark.parametrize("more", [(), ("--check",)])
def test_what_was_mended_a_moment_ago_is_waited_for(monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]) -> None:
    brokers = Brokers(monkeypatch, mended=["beacons: message.timestamp.type=LogAppendTime"], late=2)

    assert command.main(("--mend", *more)) == 0
    assert brokers.asked == 3


@pytest.mark.parametrize("more", [(), ("--check",)])
def test_a_topic_that_differs_in_what_is_never_mended_is_reported_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: tuple[str, ...]
) -> None:
    brokers = Brokers(monkeypatch, mended=[], late=2)

    assert command.main(("--mend", *more)) == 1
    assert brokers.asked == 1
    assert "topics: topic beacons has message.timestamp.type=CreateTime" in capsys.readouterr().err
