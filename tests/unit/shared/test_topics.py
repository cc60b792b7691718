"""The declared topics keep the promises that the design rests on."""

import pytest

from shared import topics
from shared.topics import PROFILES, Profile


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_one_lagging_replica_never_stops_writes(profile: Profile) -> None:
    assert profile.replication_factor == 1 or profile.min_insync_replicas < profile.replication_factor


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_a_topic_wants_as_many_replicas_in_sync_as_its_profile(profile: Profile) -> None:
    wanted = {topic.config(profile)["min.insync.replicas"] for topic in topics.ALL}
    assert wanted == {str(profile.min_insync_replicas)}
    assert {topic.config(profile)["unclean.leader.election.enable"] for topic in topics.ALL} == {"false"}


@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
def test_a_changelog_has_the_partitions_of_its_input(profile: Profile) -> None:
    assert topics.VIDEO_VIEWS_CHANGELOG.partitions(profile) == topics.BEACONS.partitions(profile)


def test_changelogs_are_compacted_alone_and_beacons_never() -> None:
    laptop = PROFILES["laptop"]
    changelog = topics.VIDEO_VIEWS_CHANGELOG.config(laptop)
    assert changelog["cleanup.policy"] == "compact"
    assert "retention.ms" not in changelog
    beacons = topics.BEACONS.config(laptop)
    assert beacons["cleanup.policy"] == "delete"
    assert beacons["message.timestamp.type"] == "LogAppendTime"


def test_recordings_are_spread_wide_never_compacted_and_bounded_by_time_and_bytes() -> None:
    production = PROFILES["production"]
    assert topics.RECORDINGS.partitions(production) == topics.RECORDINGS_CHANGELOG.partitions(production) == 768
    config = topics.RECORDINGS.config(production)
    assert config["cleanup.policy"] == "delete"
    assert {"retention.ms", "retention.bytes"} <= config.keys()
    # Rows of one session stay together although their topic is narrower: counted round, a number is its key's partition.
    assert 768 % topics.RECORDING_INDEX.partitions(production) == 0


def test_names_are_unique() -> None:
    assert len({topic.name for topic in topics.ALL}) == len(topics.ALL)
