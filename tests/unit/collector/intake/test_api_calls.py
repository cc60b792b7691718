"""API calls: the schema and the parser accept the same, values go no further, each input is stored or reported."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from services.collector.intake.api_calls import api_calls
from services.collector.intake.post import ParsedBody, Rules
from shared.api.formats import format_of, segment_of
from shared.codec import API_CALL
from shared.partitioning import api_key, partition_of
from shared.topics import API_CALLS, PROFILES
from tests.unit.collector.http.serving import Served
from tests.unit.collector.intake.bodies import post

RULES = Rules(collector_id="c-1", batch_calls_max=5)
VALIDATOR = Draft202012Validator(json.loads(api_calls.json_schema()))
CALL: dict[str, Any] = {
    "method": "post",
    "host": "API.example:8443",
    "path": "/users/123/orders?page=7&q=secret#x",
    "status": 201,
    "time_ms": 1_790_000_000_000,
    "duration_us": 1_500,
    "request": {"headers": {"X-Key": "classified"}, "body": {"name": "Ada Lovelace", "n": 5}},
    "response": {"body": [{"id": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff"}, {"id": None}]},
}


def parse(document: Any, **fields: Any) -> ParsedBody:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return api_calls.parse_calls(post(body, **{"key": "acme"} | fields), RULES)


def test_a_call_becomes_its_shape() -> None:
    (one,) = parse(CALL).accepted
    (also,) = parse({"calls": [CALL]}).accepted
    assert API_CALL.encode(one) == API_CALL.encode(also)
    assert (one.customer_id, one.host, one.method, one.status) == ("acme", "api.example:8443", "POST", 201)  # type: ignore[union-attr]
    assert (one.path, one.at_ms, one.duration_us) == (["users", "{integer}", "orders"], 1_790_000_000_000, 1_500)  # type: ignore[union-attr]
    stored = API_CALL.encode(one).decode()  # type: ignore[arg-type]
    for value in ("123/", "secret", "classified", "Ada", "6f9619ff"):
        assert value not in stored
    for name in ("page", "x-key", "name", "uuid"):
        assert name in stored


def test_without_a_key_calls_are_the_default_customers() -> None:
    assert parse(CALL, key="").accepted[0].customer_id == "default"


@pytest.mark.parametrize(
    "bad",
    [
        {"method": "G T"},
        {"host": ""},
        {"host": "a/b"},
        {"path": "users"},
        {"path": "/" + "a/" * 21},
        {"status": 99},
        {"status": "200"},
        {"time_ms": -1},
        {"unheard_of": 1},
        {"request": {"payload": 1}},
    ],
    ids=str,
)
def test_each_bad_call_is_reported_with_its_index_and_not_kept(bad: dict[str, Any]) -> None:
    found = parse({"calls": [CALL, CALL | bad, CALL]})
    assert len(found.accepted) == 2
    ((rejected),) = found.rejected
    assert (rejected.place, rejected.reason) == (1, "invalid")
    assert b"Ada" not in rejected.value


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"{", "undecodable"),
        (b"[]", "invalid"),
        (b'{"calls": 1}', "invalid"),
        (json.dumps({"calls": [CALL] * 6}).encode(), "too_large"),
    ],
)
def test_an_invalid_body_is_reported_as_a_whole(body: bytes, reason: str) -> None:
    assert [(one.reason, one.place) for one in parse(body).rejected] == [(reason, None)]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*CALL, "other"]), json_values, max_size=3))
def test_the_published_schema_and_the_parser_are_of_one_mind(changed: dict[str, Any]) -> None:
    body = json.dumps(CALL | changed).encode()
    try:
        document = json.loads(body, parse_constant=lambda _: 1 / 0)
    except ZeroDivisionError:
        # NaN is Python's, not JSON's.
        assert parse(body).rejected
        return
    found = parse(body)
    if "path" in changed and found.rejected and "too many parts" in found.rejected[0].detail:
        return
    assert bool(found.accepted) is VALIDATOR.is_valid(document)


@given(json_values, json_values)
def test_any_payload_has_a_shape(sent: Any, got: Any) -> None:
    body = json.dumps(CALL | {"request": {"body": sent}, "response": {"body": got}}).encode()
    for one in parse(body).accepted:
        assert API_CALL.decode(API_CALL.encode(one)) == one  # type: ignore[arg-type]


@given(st.binary(max_size=100))
def test_any_bytes_are_stored_or_reported(body: bytes) -> None:
    found = parse(body)
    assert len(found.accepted) + len(found.rejected) == 1


def test_a_payload_may_be_as_deep_as_json_allows() -> None:
    deep = b'{"method":"GET","host":"a","path":"/","status":200,"time_ms":1,"response":{"body":%s}}'
    assert parse(deep % (b"[" * 200 + b"]" * 200)).accepted
    assert parse(deep % (b"[" * 100_000 + b"]" * 100_000)).rejected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("123", "{integer}"),
        ("6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "{uuid}"),
        ("2024-02-30", "{date}"),
        ("deadbeef12", "{token}"),
        ("deadbeef", "deadbeef"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "{token}"),
        ("a@b.example", "{email}"),
        (":id", "{route}"),
        ("{id}", "{route}"),
        ("<int:id>", "{route}"),
        ("users", "users"),
        ("v1", "v1"),
        ("order-items", "order-items"),
    ],
)
def test_parts_of_a_path_that_are_data(text: str, found: str) -> None:
    assert segment_of(text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2024-01-01T00:00:00Z", "date-time"),
        ("2024-01-01T00:00:00.123+02:00", "date-time"),
        ("12:00:00Z", "time"),
        ("https://a.example/x", "uri"),
        ("10.0.0.1", "ipv4"),
        ("10.0.0.256", ""),
        ("2001:db8::1", "ipv6"),
        ("::", "ipv6"),
        ("12:30", ""),
        ("x" * 1_000, ""),
        ("", ""),
    ],
)
def test_formats_of_text(text: str, found: str) -> None:
    assert format_of(text) == found


async def test_calls_are_stored_by_api_and_answered_one_by_one(served: Served) -> None:
    body = {"calls": [CALL, CALL | {"status": 0}]}
    async with served.client.post("/v1/api-calls?key=acme", json=body) as answer:
        assert answer.status == 200
        results = (await answer.json())["calls"]
    assert [one["status"] for one in results] == ["stored", "rejected"]
    key = api_key("acme", "api.example:8443")
    first, second = served.sink.records
    assert (first.topic, first.key) == ("api_calls", key)
    assert first.partition == partition_of(key, API_CALLS.partitions(PROFILES["laptop"]))
    assert second.topic == "rejected"
    async with served.client.get("/v1/api-calls/schema.json") as answer:
        assert (await answer.json())["title"] == "Playhead API calls"
