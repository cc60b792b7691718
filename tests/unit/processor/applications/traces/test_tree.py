"""The tree and the critical path: tables of cases, and what holds for any spans."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.traces.tree import critical_path, grown
from shared.schemas.span import SpanFields
from tests.unit.processor.applications.traces.spans import T0, span

SpanTuple = tuple[str, int, int, str | None]


def path_of(*tuples: SpanTuple) -> str:
    """The critical path as `a0-10 b10-20`, ms."""
    spans = {one.span_id: one for one in (span(name, start, end, parent) for name, start, end, parent in tuples)}
    return " ".join(
        f"{spans[one.span_id].name}{one.start_us // 1000 - T0}-{(one.start_us + one.duration_us) // 1000 - T0}"
        for one in critical_path(grown(spans.values()))
    )


@pytest.mark.parametrize(
    ("tuples", "path"),
    [
        ([("a", 0, 100, None)], "a0-100"),
        ([("a", 0, 100, None), ("b", 10, 60, "a")], "a0-10 b10-60 a60-100"),
        ([("a", 0, 100, None), ("b", 10, 60, "a"), ("c", 20, 90, "a")], "a0-20 c20-90 a90-100"),
        ([("a", 0, 100, None), ("b", 10, 20, "a"), ("c", 20, 90, "a")], "a0-10 b10-20 c20-90 a90-100"),
        ([("a", 0, 100, None), ("b", 50, 900, "a")], "a0-50 b50-100"),
        ([("a", 0, 100, None), ("b", 200, 900, "a")], "a0-100"),
        ([("a", 50, 100, None), ("b", 0, 60, "a"), ("c", 0, 55, "b")], "c50-55 b55-60 a60-100"),
    ],
    ids=["alone", "waits", "the later of two", "one after the other", "outlasts", "after all", "began before"],
)
def test_the_critical_path_is_what_was_waited_for(tuples: list[SpanTuple], path: str) -> None:
    assert path_of(*tuples) == path


@pytest.mark.parametrize(
    ("tuples", "order", "orphans"),
    [
        ([("c", 5, 6, "b"), ("a", 0, 9, None), ("b", 4, 7, "a"), ("d", 1, 2, "a")], "adbc", 0),
        ([("c", 5, 6, "b"), ("a", 6, 9, None)], "ac", 1),
        ([("a", 0, 9, "b"), ("b", 1, 2, "a"), ("c", 1, 2, "b")], "abc", 1),
        ([("a", 0, 9, "a")], "a", 1),
    ],
    ids=["a tree", "no parent", "each other's ancestors", "its own parent"],
)
def test_every_span_comes_after_its_parent(tuples: list[SpanTuple], order: str, orphans: int) -> None:
    tree = grown(span(name, start, end, parent) for name, start, end, parent in tuples)
    assert ("".join(one.name for one in tree.in_order()), tree.orphans) == (order, orphans)


def test_a_trace_may_be_as_deep_as_it_has_spans() -> None:
    chain = [SpanFields(span_id="0", name="", service="", start_us=0, duration_us=9_999)]
    chain += [
        SpanFields(span_id=str(n), parent_span_id=str(n - 1), name="", service="", start_us=n, duration_us=9_999 - n)
        for n in range(1, 5_000)
    ]
    tree = grown(chain)
    assert len(tree.in_order()) == len(critical_path(tree)) == 5_000


letters = st.sampled_from("abcdefgh")
times = st.integers(0, 100)


@given(st.dictionaries(letters, st.tuples(times, times, st.none() | letters), min_size=1))
def test_the_tree_has_every_span_once_and_the_path_is_as_long_as_the_root(
    tuples: dict[str, tuple[int, int, str | None]],
) -> None:
    spans = [span(name, start, start + length, parent) for name, (start, length, parent) in tuples.items()]
    tree = grown(spans)
    assert sorted(one.span_id for one in tree.in_order()) == sorted(one.span_id for one in spans)
    path = critical_path(tree)
    at_us = tree.root.start_us
    for segment in path:
        assert segment.start_us == at_us
        at_us += segment.duration_us
    assert at_us == tree.root.end_us or not path
    assert sum(segment.duration_us for segment in path) == tree.root.duration_us
