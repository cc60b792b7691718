"""Filters: what they mean as SQL, and what is refused before anything runs."""

import random
from typing import Any

import duckdb
import msgspec
import pytest

from services.query.core import filters, limits
from services.query.core.dimensions import dimension
from services.query.core.filters import Filter, holds, parsed, sql_of
from services.query.core.problems import Wrong
from tests.unit.query.parts.recounting import a_view
from tests.unit.query.parts.recounting import holds as recounted


def encoded(one: Any) -> str:
    return msgspec.json.encode(one).decode()


def nested(depth: int) -> str:
    return '{"not":' * depth + '{"dimension":"cdn","in":["a"]}' + "}" * depth


def test_a_filter_is_true_or_false_of_every_view_also_under_not() -> None:
    one = parsed('{"not":{"or":[{"dimension":"cdn","in":["a"]},{"dimension":"country","in":["DE",null]}]}}')

    condition, parameters = sql_of(one, lambda named: named.sql)

    rows = duckdb.sql(
        "SELECT * FROM (VALUES ('a', 'FR'), ('b', 'FR'), (NULL, 'FR'), ('b', NULL), ('b', 'DE')) AS t(cdn, country)"
    )
    kept = duckdb.execute(f"SELECT * FROM rows WHERE {condition}", parameters).fetchall()
    assert rows.fetchall() != kept
    assert kept == [("b", "FR"), (None, "FR")]


@pytest.mark.parametrize(
    "value", ["'; DROP TABLE views; --", '" OR true', "\\", "\0", "?", "%s", "{cdn}", "💥", "a" * 100]
)
def test_a_value_is_a_parameter_whatever_it_holds(value: str) -> None:
    condition, parameters = sql_of(parsed(encoded({"dimension": "cdn", "in": [value]})), lambda named: named.sql)

    assert parameters == [value]
    assert condition.count("?") == 1
    assert value not in {*condition.split("?")} or value == "?"


def test_a_value_longer_than_a_dimension_keeps_finds_what_is_left_of_it() -> None:
    whole, cut = "x" * 150, "x" * 100
    one = parsed(encoded({"dimension": "error_code", "in": [whole]}))

    condition, parameters = sql_of(one, lambda named: named.sql)

    assert parameters == [cut]
    duckdb.sql("SELECT * FROM (VALUES (repeat('x', 150)), (repeat('x', 99)), (NULL)) AS t(error_code)").create_view(
        "long"
    )
    assert duckdb.execute(f"SELECT count(*) FROM long WHERE {condition}", parameters).fetchall() == [(1,)]
    assert holds(one, {"error_code": whole})
    assert not holds(one, {"error_code": "x" * 99})
    # Whose views they are is never decided by a part of a name.
    assert sql_of(parsed(encoded({"dimension": "customer", "in": [whole]})), lambda named: named.sql)[1] == [whole]


@pytest.mark.parametrize(
    "name", ["cdn; DROP TABLE views", "cdn'", "custom.", "custom.\0", "custom." + "x" * 101, "watch_ms", ""]
)
def test_a_dimension_is_one_of_the_registry_or_a_custom_name(name: str) -> None:
    with pytest.raises(Wrong, match="no dimension"):
        parsed(encoded({"dimension": name, "in": ["a"]}))
    assert dimension(name) is None


def test_a_custom_name_never_stands_in_a_statement() -> None:
    one = dimension("custom.x'] OR true --")

    assert one is not None
    assert (one.sql, one.key) == ("", "x'] OR true --")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "JSON"),
        ("[]", "JSON"),
        ("null", "JSON"),
        ("{}", "one of and, or, not"),
        ('{"dimension":"cdn"}', "one of and, or, not"),
        ('{"in":["a"]}', "one of and, or, not"),
        ('{"dimension":"cdn","in":["a"],"and":[]}', "one of and, or, not"),
        ('{"and":[]}', "an empty list"),
        ('{"dimension":"cdn","in":[]}', "an empty list"),
        ('{"dimension":"cdn","in":[1]}', "JSON"),
        ('{"dimension":"cdn","in":["a"],"sql":"true"}', "JSON"),
        (encoded({"dimension": "cdn", "in": ["x" * 3_000]}), "at most 2000 characters"),
        (encoded({"dimension": "cdn", "in": ["x"] * 1_001}), "at most 1000 values"),
        (encoded({"or": [{"dimension": "cdn", "in": ["x"]}] * 10_000}), "at most 32768 bytes"),
        (encoded({"or": [{"dimension": "cdn", "in": ["x"]}] * 500}), "at most 200 parts"),
        (encoded({"dimension": "viewer", "in": [f"v{number}" for number in range(21)]}), "at most 20 viewers"),
        (encoded({"or": [{"dimension": "viewer", "contains": f"v{number}"} for number in range(21)]}), "20 viewers"),
        (nested(9), "at most 8 deep"),
        (nested(3_000), "at most 8 deep"),
        ('{"and":[' * 4_000, "at most 8 deep"),
    ],
)
def test_what_is_no_filter_or_too_large_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(Wrong, match=reason) as caught:
        parsed(text)

    assert all(fault.parameter == filters.PARAMETER for fault in caught.value.faults)
    assert all(len(fault.detail) <= limits.DETAIL_CHARACTERS_MAX for fault in caught.value.faults)


def test_the_deepest_filter_that_is_allowed_is_understood() -> None:
    condition, parameters = sql_of(parsed(nested(limits.FILTER_DEPTH_MAX - 1)), lambda named: named.sql)

    assert parameters == ["a"]
    assert condition.startswith("(NOT (NOT")


def test_as_many_viewers_as_a_filter_may_name_may_be_named_twice() -> None:
    viewers = {"dimension": "viewer", "in": [f"v{number}" for number in range(limits.VIEWERS_MAX)] * 2}
    assert len(filters.named_of(parsed(encoded(viewers)), "viewer")) == limits.VIEWERS_MAX


def test_a_fault_says_where_it_is() -> None:
    with pytest.raises(Wrong) as caught:
        parsed('{"and":[{"dimension":"cdn","in":["a"]},{"not":{"dimension":"nothing","in":["a"]}}]}')

    (fault,) = caught.value.faults
    assert fault.pointer == "#/and/1/not"


def test_a_short_value_is_compared_with_the_stored_column_and_a_long_one_with_what_is_shown() -> None:
    short, _ = sql_of(Filter(dimension="cdn", values=("a",)), lambda named: named.sql)
    long, _ = sql_of(Filter(dimension="cdn", values=("x" * 100,)), lambda named: named.sql)

    assert short == "(cdn IN (?))"
    assert "left(cdn, 100)" in long


@pytest.mark.parametrize(
    "text",
    [
        '{"dimension":"country","in":["DE",null]}',
        encoded({"dimension": "country", "in": ["x" * 100]}),
        '{"dimension":"country","in":["zero\ufffdcharacter"]}',
        '{"dimension":"country","contains":"X"}',
        '{"not":{"or":[{"dimension":"cdn","in":["fastly"]},{"dimension":"asn","in":["3320"]}]}}',
        '{"and":[{"dimension":"is_bot","in":["false"]},{"not":{"dimension":"exit_before_start","in":["true"]}}]}',
        '{"or":[{"dimension":"viewer","in":["viewer"]},{"dimension":"custom.plan","in":["gold"]}]}',
        '{"dimension":"custom.plan","in":[null]}',
        '{"number":"startup_ms","at_least":1,"below":5000}',
        '{"not":{"number":"score_view","below":50}}',
    ],
)
def test_a_filter_holds_of_a_row_as_it_holds_of_a_stored_view(text: str) -> None:
    chance = random.Random(7)
    views = [a_view(chance, f"view {number}") for number in range(300)]
    one = parsed(text)
    wanted = [recounted(view, one) for view in views]
    assert [holds(one, msgspec.structs.asdict(view)) for view in views] == wanted
    assert 0 < sum(wanted) < len(wanted)
