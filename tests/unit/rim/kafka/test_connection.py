"""The check of topics at boot: any answer of the broker, or none, becomes the one error that services handle."""

from collections.abc import Iterable
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from services.rim.kafka import connection
from services.rim.kafka.connection import TopicsWrong, passes, verify_topics
from shared.settings import Settings
from shared.topics import BEACONS

SETTINGS = Settings(kafka_bootstrap="none:1")
PRODUCTION = Settings(kafka_bootstrap="none:1", topics_profile="production")


class FakeAdmin:
    """A broker with topic `beacons` that answers the question for its settings with `answer`, or an error."""

    def __init__(
        self, answer: dict[str, str] | KafkaError, settings: Settings, replicas: int, count: int | None = None
    ) -> None:
        self._count = count or BEACONS.partitions(settings.profile)
        self._answer = answer
        self._replicas = replicas

    def list_topics(self, timeout: float) -> Any:
        partition = SimpleNamespace(replicas=list(range(self._replicas)))
        partitions = dict.fromkeys(range(self._count), partition)
        return SimpleNamespace(topics={BEACONS.name: SimpleNamespace(partitions=partitions)})

    def describe_configs(self, resources: Iterable[Any], request_timeout: float) -> dict[Any, Future[Any]]:
        answer: Future[Any] = Future()
        if isinstance(self._answer, KafkaError):
            answer.set_exception(KafkaException(self._answer))
        else:
            answer.set_result({name: SimpleNamespace(value=value) for name, value in self._answer.items()})
        return dict.fromkeys(resources, answer)


def verify(
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, str] | KafkaError,
    settings: Settings = SETTINGS,
    replicas: int = 1,
    count: int | None = None,
) -> None:
    monkeypatch.setattr(connection, "AdminClient", lambda _: FakeAdmin(answer, settings, replicas, count))
    verify_topics(settings, [BEACONS])


def test_a_topic_as_declared_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    verify(monkeypatch, BEACONS.config(SETTINGS.profile))


@pytest.mark.parametrize("setting", ["cleanup.policy", "message.timestamp.type", "unclean.leader.election.enable"])
def test_a_setting_that_correctness_rests_on_must_be_as_declared(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    with pytest.raises(TopicsWrong, match=f"topic beacons has {setting}=other, declared is "):
        verify(monkeypatch, BEACONS.config(SETTINGS.profile) | {setting: "other"})


def test_fewer_replicas_in_sync_than_the_profile_declares_are_refused_and_more_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    declared = BEACONS.config(PRODUCTION.profile)
    with pytest.raises(TopicsWrong, match=r"min.insync.replicas=1, declared is at least 2: .*deploy.topics --mend"):
        verify(monkeypatch, declared | {"min.insync.replicas": "1"}, PRODUCTION, 3)
    verify(monkeypatch, declared | {"min.insync.replicas": "3"}, PRODUCTION, 4)


def test_a_topic_with_fewer_replicas_than_the_profile_declares_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        TopicsWrong, match=r"has 2 replicas, profile production declares 3: .*kafka-reassign-partitions"
    ):
        verify(monkeypatch, BEACONS.config(PRODUCTION.profile), PRODUCTION, 2)


@pytest.mark.parametrize(("count", "wanted"), [(16, 16), (11, 16), (17, 24)])
def test_partitions_that_were_raised_are_refused_with_the_command_that_moves_the_state(
    monkeypatch: pytest.MonkeyPatch, count: int, wanted: int
) -> None:
    says = f"has {count} partitions, profile laptop declares 8 .*grow beacons {wanted}`.*BEACON_PARTITIONS={wanted} "
    with pytest.raises(TopicsWrong, match=says):
        verify(monkeypatch, BEACONS.config(SETTINGS.profile), count=count)


def test_partitions_that_have_grown_pass_with_their_setting_and_are_to_grow_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    grown = Settings(kafka_bootstrap="none:1", beacon_partitions=16)
    verify(monkeypatch, BEACONS.config(grown.profile), grown)
    with pytest.raises(TopicsWrong, match=r"has 8 partitions, profile laptop declares 16 .*grow beacons 16"):
        verify(monkeypatch, BEACONS.config(grown.profile), grown, count=8)


def test_a_setting_that_operators_tune_may_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    verify(monkeypatch, BEACONS.config(SETTINGS.profile) | {"retention.ms": "1000"})


def test_a_broker_that_does_not_return_its_settings_is_no_other_kind_of_error(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED, "not allowed")

    with pytest.raises(TopicsWrong, match=r"settings of topic beacons cannot be read: .*not allowed"):
        verify(monkeypatch, refusal)


@pytest.mark.parametrize(
    ("code", "does"),
    [
        (KafkaError.NOT_LEADER_FOR_PARTITION, True),
        (KafkaError.LEADER_NOT_AVAILABLE, True),
        (KafkaError._ALL_BROKERS_DOWN, True),
        (KafkaError._MAX_POLL_EXCEEDED, True),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False),
        (KafkaError.UNKNOWN_TOPIC_ID, False),
    ],
)
def test_a_consumer_waits_for_what_passes_and_ends_with_what_does_not(code: int, does: bool) -> None:
    assert passes(KafkaError(code)) == does


@pytest.mark.parametrize("silent", [1, 3])
def test_a_broker_that_hangs_holds_up_no_boot_while_another_answers(
    monkeypatch: pytest.MonkeyPatch, silent: int
) -> None:
    class Hanging(FakeAdmin):
        """Any broker is the controller: the first ones never answer."""

        asked = 0

        def describe_configs(self, resources: Iterable[Any], request_timeout: float) -> dict[Any, Future[Any]]:
            self.asked += 1
            if self.asked > silent:
                return super().describe_configs(resources, request_timeout)
            return {resource: Future() for resource in resources}

    admin = Hanging(BEACONS.config(SETTINGS.profile), SETTINGS, 1)
    monkeypatch.setattr(connection, "AdminClient", lambda _: admin)
    monkeypatch.setattr(connection, "_AGAIN_SECONDS", 0.01)

    verify_topics(SETTINGS, [BEACONS])

    assert admin.asked == silent + 1
