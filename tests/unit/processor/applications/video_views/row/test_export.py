"""The export of rows as Mux's `VideoView`: read back by the protobuf library, by the public message's own fields."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.unknown_fields import UnknownFieldSet

from services.processor.applications.video_views.app import application
from services.processor.applications.video_views.row.mux_export import to_video_view
from shared import topics
from shared.protobuf import Encoder, Field
from shared.schemas import video_view
from shared.schemas.view import TimelineEvent, View
from tests.unit.processor.applications.video_views.beacons import (
    HOUR_MS,
    MINUTE_MS,
    RULES,
    SKEW_MS,
    T0,
    Drive,
    driver_of,
    mux,
    pipe,
    rows,
    watch,
)

FIELDS = Path(__file__).parents[5] / "fixtures" / "video-view-fields.txt"
#: (message, field) -> number, label, type; of the public .proto.
PUBLIC = {
    (message, name): (int(number), label, kind)
    for message, number, label, kind, name in (
        line.split() for line in FIELDS.read_text().splitlines() if not line.startswith("#")
    )
}
OURS = {
    "VideoView": video_view.VIDEO_VIEW,
    "Event": video_view.EVENT,
    "ErrorInfo": video_view.ERROR_INFO,
    "RenditionInfo": video_view.RENDITION_INFO,
    "Timestamp": video_view.TIMESTAMP,
    "Duration": video_view.DURATION,
}


def message_class() -> Any:
    """`VideoView` of the protobuf library, with every field of the public message."""
    proto = descriptor_pb2.FileDescriptorProto(name="video_view.proto", package="video_view.v1", syntax="proto2")
    messages = {name: proto.message_type.add(name=name) for name in dict.fromkeys(message for message, _ in PUBLIC)}
    kinds = descriptor_pb2.FieldDescriptorProto
    for (message, name), (number, label, kind) in PUBLIC.items():
        field = messages[message].field.add(name=name, number=number, label=f"LABEL_{label.upper()}")
        if kind in messages:
            field.type, field.type_name = kinds.TYPE_MESSAGE, f".video_view.v1.{kind}"
        else:
            field.type = kinds.Type.Value(f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(proto)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("video_view.v1.VideoView"))


VIDEO_VIEW = message_class()


def read(data: bytes) -> Any:
    exported = VIDEO_VIEW()
    assert exported.ParseFromString(data) == len(data)
    assert exported.IsInitialized(), exported.FindInitializationErrors()
    assert len(UnknownFieldSet(exported)) == 0
    return exported


def ms(time: Any) -> int:
    return int(time.seconds) * 1_000 + int(time.nanos) // 1_000_000


@pytest.mark.parametrize("message", OURS)
def test_every_field_is_the_public_one_by_name_number_and_type(message: str) -> None:
    for name, field in OURS[message].items():
        number, _, kind = PUBLIC[message, name]
        declared = (
            field.type if isinstance(field.type, str) else next(at for at, one in OURS.items() if one is field.type)
        )
        # A duration and a timestamp are made alike.
        assert (field.number, declared) == (number, "Timestamp" if kind == "Duration" else kind), name
    required = {name for (of, name), (_, label, _) in PUBLIC.items() if of == message and label == "required"}
    assert required <= set(OURS[message])


def test_a_watched_view_reads_as_it_was(drive: Drive) -> None:
    driver = drive(application(RULES, exports_protobuf=True))
    extra = {"video_cdn": "x", "custom_7": "gold", "experiment_name": "b", "mux_viewer_id": "m1"}
    for beacon in watch():
        pipe(driver, msgspec.structs.replace(beacon, attrs=beacon.attrs | extra))
    driver.advance_to(T0 + HOUR_MS)
    (output,) = driver.outputs(topics.VIEWS_PROTOBUF)
    (row,) = rows(driver)
    exported = read(output.value)
    assert (output.key, output.headers) == (b"acme:v1", (("revision", b"1"),))
    assert (exported.view_id, exported.property_id, exported.video_id, exported.player_name) == (
        "v1",
        "acme",
        "film",
        "main",
    )
    assert (exported.custom_7, exported.experiment_name, exported.mux_viewer_id) == ("gold", "b", "m1")
    assert (ms(exported.view_start), ms(exported.view_end)) == (T0 + SKEW_MS, T0 + SKEW_MS + 13_900)
    assert (exported.video_startup_time, exported.watch_time, exported.view_playing_time) == (400, 13_900, 11_000)
    assert (exported.rebuffer_count, exported.rebuffer_duration) == (1, 2_000)
    assert exported.rebuffer_percentage == pytest.approx(2_000 / 13_900)
    assert exported.rebuffer_frequency == pytest.approx(1 / 13_900)
    assert exported.weighted_average_bitrate == row.avg_bitrate_bps
    assert (exported.view_rendition_change_count, exported.view_rendition_upshift_count) == (1, 1)
    assert (exported.stream_type, list(exported.video_cdn_trace)) == ("on-demand", ["x"])
    assert exported.viewer_experience_score == pytest.approx(row.score_view)
    # What cannot be known is absent.
    assert not any(exported.HasField(name) for name in ("country", "player_error_code", "view_upscaling_percentage"))
    assert [event.type for event in exported.events][:4] == ["viewstart", "renditionchange", "playing", "rebufferstart"]
    assert [event.sequence_number for event in exported.events] == list(range(1, len(row.events) + 1))
    first = exported.events[1]
    assert (ms(first.server_time), ms(first.viewer_time)) == (T0 + SKEW_MS + 10, T0 + 10)
    assert first.rendition_info.bitrate == 1_000_000


def filled() -> View:
    """A row in which nothing is left out, each value another one."""
    values: dict[str, Any] = {}
    for number, field in enumerate(msgspec.structs.fields(View), 2):
        kind = str(field.type)
        values[field.name] = (
            f"text {number}" if "str" in kind else number % 2 == 0 if "bool" in kind else number + 0.5 if "float" in kind
            else number
        )  # fmt: skip
    return View(
        **values
        | {
            "source": "mux",
            "end_reason": "clean",
            "stream_type": "live",
            "view_start_ms": T0,
            "cdn_trace": ["x", "y", "x"],
            "custom": {f"custom_{number}": f"c{number}" for number in range(1, 21)},
            "req_count": 12,
            "req_failed": 1,
            "req_canceled": 1,
            "playback_ranges": [[0, 1]],
            "events": [
                TimelineEvent(at_ms=0, event="viewstart"),
                TimelineEvent(at_ms=7, event="seekstart", playhead_ms=1_500),
                TimelineEvent(at_ms=9, event="error", playhead_ms=3_000),
            ],
        }
    )


def test_every_field_of_the_table_is_filled_from_a_full_row() -> None:
    row = filled()
    exported = read(to_video_view(row, 5))
    missing = [name for name in video_view.VIDEO_VIEW if not _has(exported, name)]
    assert missing == []
    assert (exported.custom_1, exported.custom_5, exported.custom_6, exported.custom_20) == ("c1", "c5", "c6", "c20")
    assert exported.request_latency == round((row.ttfb_sum_ms or 0) / 10)
    assert exported.request_throughput == round((row.req_bytes or 0) * 8 * 1_000 / (row.req_time_ms or 1))
    assert exported.events[1].type == "seeking"
    assert (exported.events[1].playhead_time.seconds, exported.events[1].playhead_time.nanos) == (1, 500_000_000)
    assert exported.events[2].error_info.error_code == row.error_code


def _has(exported: Any, name: str) -> bool:
    return (
        bool(getattr(exported, name)) if PUBLIC["VideoView", name][1] == "repeated" else bool(exported.HasField(name))
    )


@pytest.mark.parametrize("at_ms", [-1, 0, 999, 1_000, -(2 * 9_000_000_000_000), 2 * 9_000_000_000_000])
def test_times_of_any_clock_are_reported_exactly(at_ms: int) -> None:
    exported = read(to_video_view(msgspec.structs.replace(filled(), view_start_ms=at_ms, events=[]), 0))
    assert ms(exported.view_start) == at_ms
    assert 0 <= exported.view_start.nanos < 1_000_000_000


def test_numbers_too_large_for_their_type_stay_at_its_bound() -> None:
    row = msgspec.structs.replace(filled(), watch_ms=9_000_000_000_000, rebuffer_count=1 << 31)
    exported = read(to_video_view(row, 0))
    assert (exported.watch_time, exported.rebuffer_count) == ((1 << 31) - 1, (1 << 31) - 1)


def test_a_name_that_is_no_field_is_an_error() -> None:
    with pytest.raises(KeyError):
        Encoder({"known": Field(1, "int32")}).encode({"other": 1})


def test_every_revision_is_exported_once_and_nothing_is_where_it_is_off(drive: Drive) -> None:
    driver = drive(application(RULES, exports_protobuf=True))
    *most, last = watch()
    for beacon in most:
        pipe(driver, beacon)
    driver.advance_to(T0 + 10 * MINUTE_MS)
    pipe(driver, last, 20 * MINUTE_MS)
    driver.advance_to(T0 + 40 * MINUTE_MS)
    outputs = driver.outputs(topics.VIEWS_PROTOBUF)
    assert [dict(output.headers)["revision"] for output in outputs] == [b"1", b"2"]
    assert [read(output.value).view_dropped for output in outputs] == [True, False]
    off = driver_of(drive)
    pipe(off, mux(1, "viewstart", 0))
    off.advance_to(T0 + HOUR_MS)
    assert len(rows(off)) == 1
    assert off.outputs(topics.VIEWS_PROTOBUF) == []
    assert topics.VIEWS_PROTOBUF not in application(RULES).outputs
