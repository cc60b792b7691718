"""The ends of a partition: what passes by itself is asked again, for as long as is given."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from services.processor.runtime.kafka.reading import ReadingFailed, ends
from services.rim.kafka.watermarks import watermarks

AT = TopicPartition("topic", 1)
Given = int | tuple[int, int] | None


class Client:
    """Stands in for a consumer whose answers are given; the last one stays."""

    def __init__(self, *answers: Given) -> None:
        self.answers = list(answers)

    def get_watermark_offsets(self, at: TopicPartition, *, timeout: float) -> tuple[int, int] | None:
        assert at == AT
        assert timeout > 0
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            raise KafkaException(KafkaError(answer))
        return answer


def asked(*answers: Given, seconds_max: float = 30) -> tuple[int, int]:
    client: Any = Client(*answers)
    return watermarks(client, AT, seconds_max)


def test_a_topic_that_was_made_a_moment_ago_has_its_leader_soon() -> None:
    assert asked(KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION, (3, 7)) == (3, 7)


def test_what_does_not_pass_in_time_is_an_error() -> None:
    with pytest.raises(KafkaException, match="NOT_LEADER_FOR_PARTITION"):
        asked(KafkaError.NOT_LEADER_FOR_PARTITION, seconds_max=0.2)


def test_what_does_not_pass_by_itself_is_one_at_once() -> None:
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        asked(KafkaError.TOPIC_AUTHORIZATION_FAILED, (3, 7))


def test_no_answer_is_an_error_and_ends_a_command_with_the_partitions_name() -> None:
    client: Any = Client(None)
    with pytest.raises(KafkaException, match="no ends of topic/1"):
        watermarks(client, AT, 0.2)
    with pytest.raises(ReadingFailed, match="no answer for the ends of topic/1"):
        ends(client, AT)
