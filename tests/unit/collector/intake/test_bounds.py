"""What a body may cost: work counted in calls, memory as allocated. Bodies are dense in what a parser is slow at."""

import contextlib
import random
import string
import tracemalloc
from typing import Final

import pytest
from hypothesis import given as given_
from hypothesis import settings
from hypothesis import strategies as st

from bench.collector import hostile
from services.collector.http.parsing import INLINE_BYTES, Source, inline
from services.collector.intake.api_calls import api_calls, shapes
from services.collector.intake.body import unpacked
from services.collector.intake.mux.names import NAMES_REMEMBERED_MAX, FullNames
from services.collector.intake.post import Post, Rules, TooManyInvalid
from services.collector.sink.records import records_of
from shared.topics import PROFILES
from tests.calls import calls_of
from tests.unit.collector.intake.bodies import post

#: The size limit, and a body that is within the bound on values, which are counted before it is parsed.
BODY_BYTES: Final = (2 * 1024 * 1024, 24_000)
MEMORY_BYTES_MAX: Final = 32 * 1024 * 1024
#: Calls of functions, Python's own and built-in ones. A million takes some 100 ms. Larger bodies are parsed off the loop.
CALLS_MAX: Final = 600_000
#: Of shapes of API calls for each of their places, of which a body may have `BODY_PLACES_MAX`.
CALLS_A_PLACE_MAX: Final = 80
PLACES: Final = 600
#: Of a body that is parsed on the loop, and bytes.
CALLS_INLINE_MAX: Final = 40_000
MEMORY_INLINE_BYTES_MAX: Final = 2 * 1024 * 1024
RULES: Final = Rules()
SOURCES: Final[dict[str, Source]] = {
    "mux": "mux",
    "cmcd": "cmcd",
    "native": "native",
    "epas": "epas",
    "api calls": "api",
    "otlp json": "otlp",
    "otlp protobuf": "otlp",
}


def given(parser: str, body: bytes) -> Post:
    return post(body, key="acme", content_type=hostile.CONTENT_TYPES.get(parser, ""))


def cost(parser: str, one: Post) -> tuple[int, int]:
    """Calls and bytes that parsing takes, its records included."""
    parse, _ = hostile.PARSERS[parser]
    tracemalloc.start()

    def work() -> None:
        with contextlib.suppress(TooManyInvalid):
            records_of(parse(one, RULES), one, PROFILES["laptop"])

    try:
        return calls_of(work), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def assert_bounded(parser: str, one: Post) -> None:
    calls, memory = cost(parser, one)
    assert calls <= CALLS_MAX
    assert memory <= MEMORY_BYTES_MAX


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
        "lines of keys",
    ],
    "native": ["deep lists", "bad beacons", "keys"],
    "epas": ["empty lists", "objects"],
    "api calls": ["objects in objects", "deep lists"],
    "otlp json": ["attributes", "scopes of nothing"],
    "otlp protobuf": ["a list of values", "empty resources", "empty spans"],
}


@pytest.mark.thorough
@pytest.mark.parametrize("size", BODY_BYTES)
@pytest.mark.parametrize(("parser", "kind"), [(parser, kind) for parser, kinds in WORST.items() for kind in kinds])
def test_no_body_below_the_size_limit_takes_much_work_or_memory(parser: str, kind: str, size: int) -> None:
    assert_bounded(parser, given(parser, hostile.body(parser, kind, size)))


#: A body of 20,974 bytes may unpack to the size limit.
PACKED_BYTES_MAX: Final = 20_974


@pytest.mark.parametrize(
    ("parser", "kind", "begin"),
    [
        ("cmcd", "a list of items", b'%s="%s",'),
        ("cmcd", "an unterminated string", b'%s="%s",'),
        ("epas", "empty lists", b'{"%s":"%s",'),
    ],
)
def test_a_million_items_in_21_kb_packed_take_little_work_and_memory(parser: str, kind: str, begin: bytes) -> None:
    chance = random.Random(1)
    # What cannot be packed keeps the body within the ratio that is allowed.
    noise = "".join(chance.choices(string.ascii_letters, k=24_000)).encode()
    hostile_part = hostile.body(parser, kind, 2_000_100)
    packed = hostile.packed(begin % (b"n", noise) + hostile_part.removeprefix(b"{" if parser == "epas" else b""))
    one = post(packed, key="acme", content_encoding="gzip")
    assert len(packed) <= PACKED_BYTES_MAX
    assert len(unpacked(one, RULES)) >= 2_000_000
    assert inline(one, SOURCES[parser]) is None
    assert_bounded(parser, one)


@pytest.mark.parametrize("kind", ["queries", "queries of escapes", "many calls: words", "many calls: strings"])
def test_the_places_of_api_calls_bound_their_work(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []

    class Counted(shapes.Places):
        def __init__(self) -> None:
            super().__init__(PLACES)

        def add(self, count: int) -> None:
            left.append(count)
            super().add(count)

    monkeypatch.setattr(api_calls, "Places", Counted)
    calls, memory = cost("api calls", given("api calls", hostile.body("api calls", kind, 24_000)))
    assert sum(left) >= PLACES
    assert calls <= CALLS_A_PLACE_MAX * PLACES
    assert memory <= MEMORY_BYTES_MAX * PLACES // shapes.BODY_PLACES_MAX


@pytest.mark.thorough
@pytest.mark.parametrize("parser", hostile.PARSERS)
def test_no_body_that_is_parsed_on_the_event_loop_takes_much_work_or_memory(parser: str) -> None:
    source = SOURCES[parser]
    found = []
    for kind in hostile.PARSERS[parser][1]:
        one = inline(given(parser, hostile.body(parser, kind, INLINE_BYTES[source])), source)
        if one is not None:
            found.append((*cost(parser, one), kind))
    assert max(found)[0] <= CALLS_INLINE_MAX, max(found)
    assert max(memory for _, memory, _ in found) <= MEMORY_INLINE_BYTES_MAX


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


@settings(max_examples=12)
@given_(unit=_JSON, parser=st.sampled_from(["mux", "native", "epas", "api calls"]), is_small=st.booleans())
def test_a_search_of_json_values_finds_none_that_is_worse(unit: str, parser: str, is_small: bool) -> None:
    size = INLINE_BYTES[SOURCES[parser]] - 400 if is_small else 12_000
    template = hostile.body(parser, "blanks", 2_000)
    value = b"[" + b",".join([unit.encode()] * (size // (len(unit.encode()) + 1))) + b"]"
    blanks = template.index(b"  ")
    body = template[:blanks] + value + template[blanks:].lstrip(b" ").removeprefix(b"0")
    assert_bounded(parser, given(parser, body))
    one = inline(given(parser, body), SOURCES[parser])
    assert one is None or cost(parser, one)[0] <= CALLS_INLINE_MAX


@settings(max_examples=20)
@given_(unit=st.lists(st.sampled_from(_CMCD_PIECES), min_size=1, max_size=5).map("".join), quoted=st.booleans())
def test_a_search_of_cmcd_records_finds_none_that_is_worse(unit: str, quoted: bool) -> None:
    begin = 'e=t,sid="s",ts=1795176999000,x=' + ('"' if quoted else "")
    body = (begin + unit * (40_000 // len(unit))).encode()
    assert_bounded("cmcd", given("cmcd", body))
    one = inline(given("cmcd", body[: INLINE_BYTES["cmcd"]]), "cmcd")
    assert one is None or cost("cmcd", one)[0] <= CALLS_INLINE_MAX


@pytest.mark.parametrize("invented", [8_192, 3 * NAMES_REMEMBERED_MAX])
def test_invented_names_do_not_push_out_those_in_use(invented: int) -> None:
    names = FullNames()
    used = {"xwati": 1, "vsobi": 2, "e": 3}
    full = names.spelled_out(used)
    names.spelled_out({f"c{number}": 0 for number in range(invented)})
    assert len(names) <= NAMES_REMEMBERED_MAX
    # The first look learns what was pushed out; from then on every name costs one look.
    assert names.spelled_out(used) == full
    assert all(short in names for short in used)
