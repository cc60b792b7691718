"""Session recordings: in order, whole, once; through crashes, torn uploads, gaps, and an object store that is away."""

import hashlib
import json
import random

import pytest

from services.processor.applications.recordings.app import application
from services.processor.applications.recordings.settings import SessionRules
from services.processor.engine.driver import Driver
from shared import topics
from shared.chunks import chunk_of, headers_of
from tests.unit.processor.applications.recordings.sending import (
    T0,
    Drive,
    Sent,
    chunks,
    name_of,
    pipe,
    rows,
    states,
    stored,
)

RULES = SessionRules(gap_ms=1_000, upload_ms=1_200_000, kept_ms=60_000, uploads_max=3, waiting_max=5)
APPLICATION = application(RULES)


def listed(driver: Driver, session: str = "s1") -> list[int]:
    """The numbers that a lookup lists."""
    lookup = APPLICATION.lookups[1]
    (candidate,) = lookup.candidates_of({"customer": "acme", "session": session})
    found = driver.look(lookup, candidate.subject)
    return [] if found is None else [payload[0] for payload in json.loads(found)["payloads"]]


def test_a_payload_is_put_together_from_its_chunks_and_has_a_row(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, chunks(0, b"one ", b"two ", b"three"))
    assert driver.objects == stored(0, b"one two three")
    (row,) = rows(driver)
    assert (row.customer_id, row.session_id, row.sequence, row.state) == ("acme", "s1", 0, "stored")
    assert (row.size_bytes, row.chunks, row.content_type) == (13, 3, "application/json")
    assert row.sha256 == hashlib.sha256(b"one two three").hexdigest()
    assert (row.object, row.revision, row.at_ms) == (name_of(0, b"one two three"), 1, T0)
    assert driver.tallies["stored_bytes"] == 13


def test_a_payload_whose_length_was_not_known_is_whole_with_the_chunk_that_says_so(drive: Drive) -> None:
    driver = drive(APPLICATION)
    first, second = chunks(0, b"one ", b"two", knows_count=False)
    pipe(driver, [first])
    assert driver.objects == {}
    pipe(driver, [second])
    assert driver.objects == stored(0, b"one two")


def test_payloads_are_stored_in_the_order_of_their_numbers(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for number in (2, 1, 3):
        pipe(driver, chunks(number, b"p%d" % number, upload=f"u{number}"))
    assert states(driver) == []
    pipe(driver, chunks(0, b"p0", upload="u0"))
    assert states(driver) == [(number, number, "stored") for number in range(4)]
    assert listed(driver) == [0, 1, 2, 3]
    driver.advance_to(T0 + 30_000)
    assert len(states(driver)) == 4


def test_one_payload_of_a_session_is_worked_at_a_time(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.objects_away = True
    for number in range(3):
        pipe(driver, chunks(number, b"p%d" % number, upload=f"u{number}"))
    assert driver.rows["media_requests"] == 1
    assert states(driver) == []
    driver.objects_away = False
    driver.work_media()
    assert states(driver) == [(number, number, "stored") for number in range(3)]
    assert driver.rows["media_requests"] == 0


def test_sessions_do_not_wait_for_each_other(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, chunks(1, b"waits", session="s1"))
    pipe(driver, chunks(0, b"goes", session="s2"))
    assert driver.objects == stored(0, b"goes", "s2")


def test_interleaved_uploads_keep_apart(drive: Drive) -> None:
    driver = drive(APPLICATION)
    one = chunks(0, b"a0", b"a1", b"a2", session="s1", upload="a")
    two = chunks(0, b"b0", b"b1", b"b2", session="s2", upload="b")
    pipe(driver, [chunk for pair in zip(one, two, strict=True) for chunk in pair])
    assert driver.objects == stored(0, b"a0a1a2") | stored(0, b"b0b1b2", "s2")


def test_a_torn_upload_leaves_nothing_and_its_repetition_is_the_payload(drive: Drive) -> None:
    driver = drive(APPLICATION)
    whole = chunks(0, b"one ", b"two ", b"three", upload="second")
    pipe(driver, chunks(0, b"one ", b"two ", b"three", upload="first")[:2])
    pipe(driver, whole)
    # And one that lacks a chunk in the middle, which an upload that timed out may leave.
    first, _, third = chunks(1, b"x", b"y", b"z", upload="third")
    pipe(driver, [first, third])
    assert driver.objects == stored(0, b"one two three")
    assert states(driver) == [(0, 0, "stored")]
    assert driver.tallies["torn_chunks"] == 1


def test_a_payload_posted_again_is_the_same_payload(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for upload in ("a", "b", "c"):
        pipe(driver, chunks(0, b"one ", b"two", upload=upload))
    pipe(driver, chunks(0, b"other bytes", upload="d"))
    assert states(driver) == [(0, 0, "stored")]
    assert driver.objects == stored(0, b"one two")
    assert driver.tallies["repeated_payloads"] == 3


def test_a_gap_is_waited_for_then_reported_and_what_still_comes_is_stored(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, chunks(0, b"p0", upload="u0"))
    pipe(driver, chunks(3, b"p3", upload="u3"))
    driver.advance_to(T0 + 999)
    assert states(driver) == [(0, 0, "stored")]
    driver.advance_to(T0 + 1_000)
    assert states(driver) == [(0, 0, "stored"), (1, 2, "missing"), (3, 3, "stored")]
    assert driver.tallies["missing_payloads"] == 2
    pipe(driver, chunks(2, b"p2", upload="u2"), at_ms=T0 + 2_000)
    assert states(driver)[3:] == [(2, 2, "stored")]
    assert [row.revision for row in rows(driver)] == [1, 2, 3, 4]
    assert listed(driver) == [0, 2, 3]
    pipe(driver, chunks(2, b"p2", upload="again"), at_ms=T0 + 3_000)
    assert len(states(driver)) == 4


def test_a_gap_with_too_much_behind_it_is_given_up_at_once(drive: Drive) -> None:
    driver = drive(APPLICATION)
    for number in range(1, RULES.waiting_max + 2):
        pipe(driver, chunks(number, b"p%d" % number, upload=f"u{number}"))
    assert states(driver) == [(0, 0, "missing"), *((number, number, "stored") for number in range(1, 7))]


def test_an_upload_that_never_ends_is_dropped(drive: Drive) -> None:
    driver = drive(APPLICATION)
    first, second = chunks(0, b"one ", b"two")
    pipe(driver, [first])
    driver.advance_to(T0 + RULES.upload_ms)
    pipe(driver, [second], at_ms=T0 + RULES.upload_ms)
    assert states(driver) == []
    assert driver.tallies["torn_chunks"] == 1


def test_an_upload_that_goes_on_has_all_the_time_it_takes(drive: Drive) -> None:
    driver = drive(APPLICATION)
    parts = [b"%d" % number for number in range(100)]
    for number, chunk in enumerate(chunks(0, *parts)):
        driver.advance_to(T0 + number * 59_000)
        pipe(driver, [chunk], at_ms=T0 + number * 59_000)
    assert driver.objects == stored(0, b"".join(parts))


def test_many_uploads_of_a_session_at_a_time_are_all_stored(drive: Drive) -> None:
    driver = drive(application(SessionRules()))
    uploads = [chunks(number, b"one ", b"two", upload=f"u{number}") for number in range(24)]
    pipe(driver, [first for first, _ in uploads])
    pipe(driver, [second for _, second in uploads])
    assert states(driver) == [(number, number, "stored") for number in range(24)]


def test_one_upload_more_than_a_session_may_have_drops_the_one_that_is_silent_for_longest(drive: Drive) -> None:
    driver = drive(APPLICATION)
    oldest, silent, newer, newest = (chunks(0, b"a", b"b", b"c", upload=f"u{number}") for number in range(4))
    for number, one in enumerate((oldest[0], silent[0], newer[0], oldest[1], newest[0])):
        pipe(driver, [one], at_ms=T0 + number)
    pipe(driver, silent[1:], at_ms=T0 + 10)
    assert states(driver) == []
    pipe(driver, oldest[2:], at_ms=T0 + 11)
    assert states(driver) == [(0, 0, "stored")]


def test_a_payload_of_one_chunk_takes_no_place_of_an_upload(drive: Drive) -> None:
    driver = drive(APPLICATION)
    uploads = [chunks(number, b"one ", b"two", upload=f"u{number}") for number in range(RULES.uploads_max)]
    pipe(driver, [first for first, _ in uploads])
    pipe(driver, chunks(3, b"whole", upload="whole"))
    pipe(driver, [second for _, second in uploads])
    assert states(driver) == [(number, number, "stored") for number in range(4)]


def test_what_kafka_has_dropped_is_reported_as_lost_and_may_come_again(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.objects_away = True
    pipe(driver, chunks(0, b"one ", b"two", upload="a"))
    pipe(driver, chunks(1, b"next", upload="b"))
    driver.lose(topics.RECORDINGS, 1)
    driver.objects_away = False
    driver.work_media()
    assert states(driver) == [(0, 0, "lost"), (1, 1, "stored")]
    pipe(driver, chunks(0, b"one ", b"two", upload="c"))
    assert states(driver)[2:] == [(0, 0, "stored")]
    assert listed(driver) == [0, 1]


def test_bytes_that_are_not_what_was_announced_are_never_stored(drive: Drive) -> None:
    driver = drive(APPLICATION)
    first, second = chunks(0, b"one ", b"two")
    pipe(driver, [first, second._replace(value=b"TWO")])
    assert states(driver) == [(0, 0, "corrupt")]
    assert driver.objects == {}
    pipe(driver, chunks(0, b"one ", b"two", upload="again"))
    assert states(driver)[1:] == [(0, 0, "stored")]


def test_a_payload_that_the_store_refuses_is_rejected_and_the_session_goes_on(drive: Drive) -> None:
    driver = drive(APPLICATION)
    driver.objects_refused = {name_of(0, b"one two ")}
    refused = chunks(0, b"one ", b"two ", upload="a")
    other = chunks(0, b"else", session="s2", upload="b")
    pipe(driver, [refused[0], *other, refused[1], *chunks(1, b"next", upload="c")])
    assert [(row.session_id, row.sequence, row.state) for row in rows(driver)] == [
        ("s2", 0, "stored"),
        ("s1", 0, "refused"),
        ("s1", 1, "stored"),
    ]
    rejected = [dict(output.headers) for output in driver.outputs(topics.REJECTED)]
    assert [headers["origin"] for headers in rejected] == [b"recordings/0/0", b"recordings/0/2"]
    assert {headers["reason"] for headers in rejected} == {b"object_refused"}
    # Given back after the store was mended, as `redrive` does: the same records, at the end of the input.
    driver.objects_refused = set()
    pipe(driver, refused)
    assert states(driver)[3:] == [(0, 0, "stored")]
    assert driver.objects[name_of(0, b"one two ")] == b"one two "
    assert listed(driver) == [0, 1]


def test_a_silent_session_is_forgotten_with_its_list(drive: Drive) -> None:
    driver = drive(APPLICATION)
    pipe(driver, chunks(0, b"p0"))
    assert (driver.rows["sessions"], driver.rows["stored"]) == (1, 1)
    driver.advance_to(T0 + RULES.kept_ms)
    assert driver.rows == {"sessions": 0, "media_requests": 0, "stored": 0, "waiting": 0, "waiting_numbers": 0}


def test_a_payload_of_a_forgotten_session_replaces_no_object(drive: Drive) -> None:
    """Whoever knew the session's name could replace what was stored once the session was forgotten."""
    driver = drive(APPLICATION)
    pipe(driver, chunks(0, b"what the viewer saw"))
    driver.advance_to(T0 + RULES.kept_ms)
    pipe(driver, chunks(0, b"something else", upload="u2"), at_ms=T0 + RULES.kept_ms)
    assert driver.objects == stored(0, b"what the viewer saw") | stored(0, b"something else")
    assert [row.object for row in rows(driver)] == list(driver.objects)


def test_a_record_that_is_no_chunk_is_rejected_with_its_place(drive: Drive) -> None:
    driver = drive(APPLICATION)
    (sent,) = chunks(0, b"p0")
    pipe(driver, [Sent(sent.key, b"?", sent.headers[1:]), Sent(b"acme:other", b"?", sent.headers), sent])
    rejected = [dict(output.headers) for output in driver.outputs(topics.REJECTED)]
    assert [headers["detail"] for headers in rejected] == [
        b"no header 'session'",
        b"the key names another session than the headers",
    ]
    assert rejected[0]["origin"] == b"recordings/0/0"
    assert states(driver) == [(0, 0, "stored")]


def test_what_is_open_at_a_crash_is_found_again_without_any_record() -> None:
    driver = Driver(APPLICATION)
    driver.objects_away = True
    pipe(driver, chunks(0, b"p0"))
    driver.restart_with(APPLICATION)
    driver.objects_away = False
    driver.work_media()
    assert states(driver) == [(0, 0, "stored")]


@pytest.mark.parametrize("seed", range(4))
def test_any_mixture_of_sessions_uploads_and_repetitions_is_stored_in_order_and_once(drive: Drive, seed: int) -> None:
    random_ = random.Random(seed)
    truth: dict[str, bytes] = {}
    streams: list[list[Sent]] = []
    for session in ("s1", "s2", "s3"):
        for number in range(8):
            parts = [random_.randbytes(random_.randint(1, 40)) for _ in range(random_.randint(1, 4))]
            truth |= stored(number, b"".join(parts), session)
            uploads = [f"{session}-{number}-{attempt}" for attempt in range(random_.choice([1, 1, 2]))]
            streams += [chunks(number, *parts, session=session, upload=upload) for upload in uploads]
    driver = drive(application(SessionRules(uploads_max=100, waiting_max=100)))
    while streams:
        stream = random_.choice(streams[:6])
        pipe(driver, [stream.pop(0)])
        if not stream:
            streams.remove(stream)
    assert driver.objects == truth
    for session in ("s1", "s2", "s3"):
        assert [row.sequence for row in rows(driver) if row.session_id == session] == list(range(8))
        assert listed(driver, session) == list(range(8))


@pytest.mark.thorough
def test_a_long_list_comes_in_parts() -> None:
    lookup = APPLICATION.lookups[0]
    driver = Driver(application(SessionRules()))
    for number in range(2_100):
        pipe(driver, chunks(number, b"p", upload=f"u{number}"))
    (candidate,) = lookup.candidates_of({"customer": "acme", "session": "s1"})
    found = driver.look(lookup, candidate.subject)
    assert found is not None
    assert lookup.objects_of is not None
    first = lookup.objects_of(found)
    assert (len(first.objects), first.rest) == (2_048, {"from": "2048"})
    (candidate,) = lookup.candidates_of({"customer": "acme", "session": "s1", **(first.rest or {})})
    found = driver.look(lookup, candidate.subject)
    assert found is not None
    second = lookup.objects_of(found)
    assert (len(second.objects), second.rest) == (52, None)
    assert second.objects[-1].name == name_of(2_099, b"p")


def test_headers_say_all_of_a_chunk() -> None:
    (sent,) = chunks(7, b"bytes", content_type="text/plain; charset=utf-8")
    chunk = chunk_of(sent.headers)
    assert (chunk.sequence, chunk.index, chunk.count, chunk.end) == (7, 0, 1, 5)
    assert [name for name, _ in headers_of(chunk)] == [name for name, _ in sent.headers]
