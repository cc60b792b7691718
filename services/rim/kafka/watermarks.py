"""Where a partition begins and ends, asked again while that passes by itself: a leader that moves, or is not elected yet."""

import time
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from services.rim.kafka.connection import passes

_AGAIN_SECONDS: Final = 0.1


def watermarks(consumer: Consumer, at: TopicPartition, seconds_max: float) -> tuple[int, int]:
    """The first offset of a partition, and the one after its last, as this consumer may read it.

    Raises `KafkaException`: at once for what does not pass, after `seconds_max` for the rest (`_TIMED_OUT` without an answer).
    """
    deadline = time.monotonic() + seconds_max
    while True:
        try:
            # A timeout of 0 would not wait at all.
            found = consumer.get_watermark_offsets(at, timeout=max(_AGAIN_SECONDS, deadline - time.monotonic()))
        except KafkaException as failure:
            if not passes(failure.args[0]) or time.monotonic() >= deadline:
                raise
            time.sleep(_AGAIN_SECONDS)
            continue
        if found is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"no ends of {at.topic}/{at.partition}"))
        return found
