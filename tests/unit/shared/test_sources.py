"""The table of clients' traits holds every client that a beacon may come from."""

from typing import get_args

import pytest
from pyspark.sql import Row

from services.finalizer.jobs.deletions.finding import keys_of_view
from services.processor.applications.video_views.beacons.sources import to_step
from shared.schemas.beacon import Beacon, SourceName
from shared.sources import SOURCES, Ordering


def test_every_source_of_a_beacon_has_its_traits() -> None:
    assert set(SOURCES) == set(get_args(SourceName))
    assert all(name == source.name for name, source in SOURCES.items())


def test_a_source_that_is_ordered_by_number_has_a_first_number_and_no_play_has_a_session_without_one() -> None:
    for source in SOURCES.values():
        assert source.first_number is not None or source.ordering is Ordering.TIME
        assert not source.has_plays or source.takes_back
        assert source.heartbeat_ms > 0


@pytest.mark.parametrize("name", sorted(SOURCES))
def test_a_beacon_of_every_source_is_read(name: SourceName) -> None:
    beacon = Beacon(
        schema_version=1,
        source=name,
        customer_id="acme",
        view_id="v1",
        event="viewstart",
        source_event="viewstart",
        recv_time_ms=2,
        client_time_ms=1,
        seq=SOURCES[name].first_number,
        attrs={"sta": "s"},
    )
    step = to_step(beacon)
    assert step.begins
    assert ("session_id" in step.dimensions) == SOURCES[name].names_session


def test_a_viewer_is_forgotten_by_the_key_of_the_session_where_a_view_id_has_plays() -> None:
    for name, source in SOURCES.items():
        keys = keys_of_view("acme", Row(view_id="s1.2", view_epoch=2, source=name))
        assert (len(keys) == 2) == source.has_plays
