"""The installation of tests: its profile, and what its services and commands are given of Kafka.

It is the smallest, since each partition costs every process CPU time: a producer, a store, a task of Spark. The demo, the
chaos of slots and of users, rolling restarts, membership and the comparison of two builds have profile laptop, the default.
"""

from typing import Final

from shared.settings import Settings
from shared.topics import ALL, PROFILES, ProfileName

PROFILE: Final[ProfileName] = "small"
#: Of everything keyed by view.
PARTITIONS: Final = PROFILES[PROFILE].view_partitions
#: By topic, of all of them.
COUNTS: Final = {topic.name: topic.partitions(PROFILES[PROFILE]) for topic in ALL}


def kafka(bootstrap: str, profile: ProfileName = PROFILE) -> Settings:
    """What all services of an installation share, as an object."""
    return Settings(kafka_bootstrap=bootstrap, topics_profile=profile)


def variables(bootstrap: str, profile: ProfileName = PROFILE) -> dict[str, str]:
    """The same as variables of a service's environment."""
    return {"PLAYHEAD_KAFKA_BOOTSTRAP": bootstrap, "PLAYHEAD_TOPICS_PROFILE": profile}
