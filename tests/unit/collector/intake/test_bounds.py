"""What a body may cost: work counted in calls, memory as allocated. Bodies are dense in whatever a parser is slow at."""

import sys
import tracemalloc
from types import FrameType
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.collector import hostile
from services.collector.intake.mux.names import NAMES_REMEMBERED_MAX, FullNames
from services.collector.intake.post import ParsedBody, Rules
from services.collector.sink.records import records_of
from shared.topics import PROFILES
from tests.unit.collector.intake.bodies import post

BODY_BYTES: Final = 2 * 1024 * 1024
MEMORY_BYTES_MAX: Final = 32 * 1024 * 1024
#: Calls of functions, Python's own and built-in ones. A million takes some 100 ms.
CALLS_MAX: Final = 600_000
#: Shapes of API calls cost the most; such bodies are read off the loop.
CALLS_MAX_BY_PARSER: Final = {"api calls": 2_500_000}
RULES: Final = Rules()


def parsed_of(parser: str, body: bytes) -> ParsedBody:
    parse, _ = hostile.bodies(2_000)[parser]
    given_post = post(body, key="acme", content_type=hostile.CONTENT_TYPES.get(parser, ""))
    parsed = parse(given_post, RULES)
    records_of(parsed, given_post, PROFILES["laptop"])
    return parsed


def calls_of(parser: str, body: bytes) -> int:
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parsed_of(parser, body)
    finally:
        sys.setprofile(before)
    return calls


def memory_of(parser: str, body: bytes) -> int:
    tracemalloc.start()
    try:
        parsed_of(parser, body)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


#: What took the most before it was bounded: a list of a million items, a string that never ends, and so on.
WORST: Final = {
    "mux": ["empty lists", "empty objects", "objects in objects", "keys", "strings", "half characters in lists"],
    "cmcd": [
        "a list of items",
        "a list of items with parameters",
        "an unterminated string",
        "an unterminated string of escapes",
        "keys that need care",
        "one key over and over",
        "parameters over and over",
        "empty lines",
    ],
    "native": ["deep lists", "bad beacons", "keys"],
    "epas": ["empty lists", "objects"],
    "api calls": ["queries", "queries of escapes", "objects in objects", "deep lists"],
    "otlp json": ["attributes", "scopes of nothing"],
    "otlp protobuf": ["a list of values", "empty resources"],
}


@pytest.mark.parametrize(("parser", "kind"), [(parser, kind) for parser, kinds in WORST.items() for kind in kinds])
def test_no_body_below_the_size_limit_takes_much_work_or_memory(parser: str, kind: str) -> None:
    body = hostile.bodies(BODY_BYTES)[parser][1][kind][:BODY_BYTES]
    assert calls_of(parser, body) <= CALLS_MAX_BY_PARSER.get(parser, CALLS_MAX)
    assert memory_of(parser, body) <= MEMORY_BYTES_MAX


_PIECES: Final = ["0", "1.5", '""', '"ā"', '"\\ud800"', '"\\\\"', "[]", "{}", "null", '"a"', "-1", '"a@b.example"']
_JSON: Final = st.recursive(
    st.sampled_from(_PIECES),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{','.join(items)}]")
        | st.lists(inner, max_size=3).map(
            lambda items: "{" + ",".join(f'"k{n}":{one}' for n, one in enumerate(items)) + "}"
        )
    ),
    max_leaves=12,
)
_CMCD_PIECES: Final = [
    "a",
    "=",
    "(",
    ")",
    ";",
    ",",
    " ",
    '"',
    "\\",
    "?1",
    "1",
    ":",
    "@",
    "\n",
    "b=1,",
    "c=(1 2),",
    ';d="x"',
]


@settings(max_examples=15)
@given(unit=_JSON, parser=st.sampled_from(["mux", "native", "epas", "api calls"]))
def test_a_search_of_json_values_finds_none_that_is_worse(unit: str, parser: str) -> None:
    template = hostile.bodies(2_000)[parser][1]["blanks"]
    value = b"[" + b",".join([unit.encode()] * (200_000 // (len(unit.encode()) + 1))) + b"]"
    blanks = template.index(b"  ")
    body = template[:blanks] + value + template[blanks:].lstrip(b" ").removeprefix(b"0")
    assert calls_of(parser, body) <= CALLS_MAX_BY_PARSER.get(parser, CALLS_MAX)
    assert memory_of(parser, body) <= MEMORY_BYTES_MAX


@settings(max_examples=25)
@given(unit=st.lists(st.sampled_from(_CMCD_PIECES), min_size=1, max_size=5).map("".join), quoted=st.booleans())
def test_a_search_of_cmcd_records_finds_none_that_is_worse(unit: str, quoted: bool) -> None:
    begin = 'e=t,sid="s",ts=1795176999000,x=' + ('"' if quoted else "")
    body = (begin + unit * (400_000 // len(unit))).encode()
    assert calls_of("cmcd", body) <= CALLS_MAX
    assert memory_of("cmcd", body) <= MEMORY_BYTES_MAX


def test_invented_names_do_not_push_out_those_in_use() -> None:
    names = FullNames()
    used = {"xwati": 1, "vsobi": 2, "e": 3}
    full = names.spelled_out(used)
    names.spelled_out({f"c{number}": 0 for number in range(3 * NAMES_REMEMBERED_MAX)})
    assert len(names) <= NAMES_REMEMBERED_MAX
    # The first look learns what was pushed out; from then on every name costs one look.
    assert names.spelled_out(used) == full
    assert all(short in names for short in used)
