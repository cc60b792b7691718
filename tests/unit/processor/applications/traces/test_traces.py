"""Stories of traces: joined, written once, revised, bridged, late; each in three weathers."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from services.processor.applications.traces.app import application
from services.processor.applications.traces.settings import TraceRules
from services.processor.engine.application.application import Application
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.schemas.span import SpanEvent, SpanLink
from tests.unit.processor.applications.traces.spans import (
    APPLICATION,
    KEY,
    TRACE,
    names,
    pass_time,
    pipe,
    rows,
    span,
    span_id,
)

Drive = Callable[[Application], Driver]


def test_spans_of_many_services_become_one_trace_when_their_window_ends(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(
        driver,
        span("c", 20, 40, "b", service="stock"),
        span("b", 10, 60, "a", service="cart"),
        span("d", 60, 90, "a", service="pay", status="error"),
        span("a", 0, 100),
    )
    pass_time(driver, 1_100)
    assert rows(driver) == []
    pass_time(driver, 1_101)
    (row,) = rows(driver)
    assert (names(row), row.part, row.revision, row.duration_us, row.complete) == ("abcd", 1, 1, 100_000, True)
    assert (row.error, row.root_error, row.error_count, row.root_name, row.root_service) == (
        True,
        False,
        1,
        "a",
        "shop",
    )
    assert [(one.name, one.spans, one.errors, one.critical_us) for one in row.services] == [
        ("cart", 1, 0, 30_000),
        ("pay", 1, 1, 30_000),
        ("shop", 1, 0, 20_000),
        ("stock", 1, 0, 20_000),
    ]
    pass_time(driver, 50_000)
    assert len(rows(driver)) == 1


def test_a_quiet_partition_writes_its_traces_too(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("a", 0, 100))
    driver.advance_to(span("a", 0, 100).end_us // 1000 + 1_001)
    assert [names(row) for row in rows(driver)] == ["a"]


def test_a_span_inside_the_grace_makes_a_revision(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("a", 0, 100))
    pass_time(driver, 5_000)
    pipe(driver, span("b", 10, 60, "a"))
    pass_time(driver, 5_001)
    assert [(names(row), row.part, row.revision) for row in rows(driver)] == [("a", 1, 1), ("ab", 1, 2)]


def test_a_span_past_its_grace_is_rejected_as_late_and_counted(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("a", 0, 100))
    pass_time(driver, 6_101)
    late = span("b", 10, 100, "a")
    stranger = span("x", 10, 100, trace_id="e" * 32)
    pipe(driver, late, stranger)
    pass_time(driver, 20_000)
    assert [names(row) for row in rows(driver)] == ["a"]
    assert [codec.SPAN.decode(output.value) for output in driver.outputs(topics.LATE_SPANS)] == [late, stranger]
    assert look(driver)["parts"][0]["late_count"] == 1


def test_a_span_before_its_grace_is_over_is_not_late(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("a", 0, 100))
    pass_time(driver, 6_101)
    # It is as old, but it ended one ms later, and so its window closes one ms later.
    pipe(driver, span("b", 10, 101, "a"))
    assert driver.outputs(topics.LATE_SPANS) == []


def test_a_client_whose_clock_is_ahead_makes_nobody_else_late(drive: Drive) -> None:
    driver = drive(APPLICATION)
    ahead = span("x", 0, 55_000, trace_id="e" * 32)
    pipe(driver, ahead, at_ms=100)
    pipe(driver, span("a", 0, 100), at_ms=200)
    assert driver.outputs(topics.LATE_SPANS) == []
    pass_time(driver, 1_102)
    assert [names(row) for row in rows(driver)] == ["a"]


def test_a_silence_longer_than_the_gap_makes_two_parts(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("a", 0, 100), span("b", 1_101, 1_200, "a"))
    pass_time(driver, 3_000)
    assert [(names(row), row.part, row.revision) for row in rows(driver)] == [("a", 1, 1), ("b", 2, 1)]


def test_a_span_between_two_parts_makes_them_one_and_takes_the_second_row_back(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("a", 0, 100), span("c", 2_000, 2_100, "a"))
    pass_time(driver, 4_000)
    pipe(driver, span("b", 900, 1_200, "a"))
    pass_time(driver, 4_001)
    assert [(names(row), row.part, row.revision, row.absorbed_by) for row in rows(driver)] == [
        ("a", 1, 1, None),
        ("c", 2, 1, None),
        ("", 2, 2, 1),
        ("abc", 1, 2, None),
    ]


def test_two_parts_without_rows_are_joined_without_a_retraction(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("c", 2_000, 2_100, "a"), span("b", 900, 1_200, "a"), span("a", 0, 100), at_ms=2_100)
    pass_time(driver, 4_000)
    assert [(names(row), row.revision) for row in rows(driver)] == [("abc", 1)]


def test_a_root_that_outlasts_every_window_still_gets_its_children(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("b", 10, 60, "a"))
    pass_time(driver, 10_000)
    pipe(driver, span("a", 0, 30_000))
    pass_time(driver, 40_000)
    assert [(names(row), row.revision, row.complete) for row in rows(driver)] == [("b", 1, False), ("ab", 2, True)]


def test_a_span_that_comes_twice_counts_once(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("a", 0, 100), span("a", 0, 100))
    pass_time(driver, 2_000)
    pipe(driver, span("a", 0, 100))
    pass_time(driver, 3_000)
    (row,) = rows(driver)
    assert (names(row), row.duplicate_count) == ("a", 1)
    assert look(driver)["parts"][0]["duplicate_count"] == 2


def test_a_trace_beyond_its_limit_says_so(drive: Drive) -> None:
    driver = drive(application(TraceRules(gap_ms=1_000, grace_ms=5_000, kept_ms=1_000, spans_max=2)))
    pipe(driver, span("a", 0, 100), span("b", 10, 60, "a"), span("c", 10, 200, "a"))
    pass_time(driver, 1_200)
    assert rows(driver) == []
    pass_time(driver, 1_201)
    (row,) = rows(driver)
    assert (names(row), row.dropped_count) == ("ab", 1)


def test_what_is_no_span_or_from_the_future_is_rejected(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.pipe(topics.SPANS, KEY, b"{}", at_ms=0)
    driver.pipe(topics.SPANS, KEY, b"\xff", at_ms=0)
    driver.pipe(topics.SPANS, None, codec.SPAN.encode(span("a", 0, 1)), at_ms=span("a", 0, 1).end_us // 1000)
    pipe(driver, span("a", 0, 100_000), at_ms=1_000)
    assert len(driver.outputs(topics.REJECTED)) == 4


def look(driver: Driver) -> dict[str, Any]:
    (lookup,) = APPLICATION.lookups
    ((key, subject),) = lookup.candidates_of({"trace": TRACE.upper(), "customer": "acme"})
    assert key == KEY
    found = driver.look(lookup, subject)
    assert found is not None
    answer = msgspec.json.decode(found)
    assert (answer["total"], answer["errors"]) == (1, None)
    document: dict[str, Any] = answer["data"][0]
    return document


def test_a_trace_can_be_looked_up_while_it_is_open_and_as_long_as_it_is_kept(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, span("b", 10, 60, "a", kind="client", attrs={"n": 1, "f": 0.5, "list": [1, "x"]}))
    assert look(driver)["parts"][0]["state"] == "open"
    assert (look(driver)["parts"][0]["revision"], look(driver)["parts"][0]["complete"]) == (0, False)
    pipe(
        driver,
        span(
            "a",
            0,
            100,
            service="web",
            status="error",
            status_message="boom",
            scope="lib",
            resource={"host.name": "h-1"},
            events=[SpanEvent(span("a", 5, 5).start_us, "exception", {"exception.type": "E"})],
            links=[SpanLink("b" * 32, "c" * 16)],
        ),
    )
    pass_time(driver, 2_000)
    found = look(driver)
    assert (found["traceID"], found["parts"][0]["state"], found["parts"][0]["revision"]) == (TRACE, "finished", 1)
    root, child = found["spans"]
    assert child["references"] == [{"refType": "CHILD_OF", "traceID": TRACE, "spanID": span_id("a")}]
    assert (child["startTime"], child["duration"]) == (span("b", 10, 60).start_us, 50_000)
    assert child["tags"] == [
        {"key": "n", "type": "int64", "value": 1},
        {"key": "f", "type": "float64", "value": 0.5},
        {"key": "list", "type": "string", "value": '[1,"x"]'},
        {"key": "span.kind", "type": "string", "value": "client"},
    ]
    assert {tag["key"]: tag["value"] for tag in root["tags"]} == {
        "otel.scope.name": "lib",
        "otel.status_code": "ERROR",
        "otel.status_description": "boom",
        "error": True,
    }
    assert root["references"][0]["refType"] == "FOLLOWS_FROM"
    assert root["logs"][0]["fields"][0] == {"key": "event", "type": "string", "value": "exception"}
    process = found["processes"][root["processID"]]
    assert (process["serviceName"], process["tags"][0]["value"]) == ("web", "h-1")
    # Closed at 6,101, kept for a minute.
    pass_time(driver, 66_100)
    assert look(driver)["spans"]
    pass_time(driver, 66_101)
    (lookup,) = APPLICATION.lookups
    assert driver.look(lookup, KEY) is None


@pytest.mark.parametrize("parts", [{"trace": "1"}, {"trace": "0" * 32}, {"trace": TRACE, "customer": "a b"}])
def test_a_question_that_names_no_trace_is_the_askers_mistake(parts: dict[str, str]) -> None:
    (lookup,) = APPLICATION.lookups
    with pytest.raises(ValueError, match=r"is|matches"):
        lookup.candidates_of(parts)
