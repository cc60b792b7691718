"""Merging shapes: commutative, associative, and idempotent on what is learned; and what comes out fits what went in."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from services.collector.intake.api_calls.shapes import Places, shape_of
from services.processor.applications.api_schemas.openapi import schema_of
from shared.api import shapes
from shared.api.shapes import counted, discreet, learned, merged, merged_all, teaches
from shared.schemas.apis.shape import Shape

names = st.sampled_from(["id", "state", "email", "a", "b", "c", "7f", "2024-01-01"])
words = st.sampled_from(["on", "off", "x y", "a@b.example", "2024-01-01", "10.0.0.1", *"abcdefghijklmnopq"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)
seen = st.builds(shape_of, values, st.integers(0, 9), st.builds(Places), names)


def _all(given_: list[Shape]) -> Shape:
    found = merged_all(given_)
    assert found is not None
    return found


#: Shapes take long to draw.
EXAMPLES = min(60, settings().max_examples)
#: Shapes of one value and of several.
many = st.lists(seen, min_size=1, max_size=6).map(_all)


@settings(max_examples=EXAMPLES)
@given(many, many)
def test_which_comes_first_does_not_matter(one: Shape, other: Shape) -> None:
    assert merged(one, other) == merged(other, one)


@settings(max_examples=EXAMPLES)
@given(many, many, many)
def test_how_they_are_grouped_does_not_matter(one: Shape, other: Shape, third: Shape) -> None:
    assert merged(merged(one, other), third) == merged(one, merged(other, third))


@settings(max_examples=EXAMPLES)
@given(many, many)
def test_what_is_known_already_changes_nothing_but_counts(one: Shape, other: Shape) -> None:
    both = merged(one, other)
    assert learned(merged(both, other)) == learned(both)
    assert learned(merged(one, one)) == learned(one)
    assert both.count == one.count + other.count


@settings(max_examples=EXAMPLES)
@given(many, many, many)
def test_what_teaches_nothing_is_counted_as_if_merged(one: Shape, other: Shape, third: Shape) -> None:
    for known in (one, merged(one, other), merged(merged(one, other), third)):
        stored = discreet(known)
        for call in (one, other, third):
            if not teaches(stored, call):
                assert counted(stored, call) == discreet(merged(stored, call))
            else:
                assert learned(discreet(merged(stored, call))) != learned(stored)


@settings(max_examples=EXAMPLES)
@given(st.lists(st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=1), min_size=1, max_size=30))
def test_the_limits_of_an_object_and_an_enumeration_do_not_depend_on_order(letters: list[str]) -> None:
    # Lowered here: objects of 500 names would take long to draw.
    fields_max, shapes.FIELDS_MAX = shapes.FIELDS_MAX, 5
    try:
        given_ = [shape_of({letter: letter}, 0, Places()) for letter in letters]
        assert learned(_all(given_)) == learned(_all(given_[::-1]))
        assert len(_all(given_).fields) <= 5
    finally:
        shapes.FIELDS_MAX = fields_max


@settings(max_examples=EXAMPLES)
@given(many)
def test_a_shape_survives_being_stored(shape: Shape) -> None:
    for encode, decode in (
        (msgspec.msgpack.encode, msgspec.msgpack.Decoder(Shape).decode),
        (msgspec.json.encode, msgspec.json.Decoder(Shape).decode),
    ):
        assert decode(encode(shape)) == shape


@settings(max_examples=EXAMPLES)
@given(st.lists(values, min_size=1, max_size=8))
def test_every_value_that_was_seen_fits_the_schema(given_: list[Any]) -> None:
    schema = schema_of(_all([discreet(shape_of(value, 0, Places())) for value in given_]))
    Draft202012Validator.check_schema(schema)
    for value in given_:
        Draft202012Validator(schema).validate(value)


@settings(max_examples=EXAMPLES)
@given(st.lists(words, min_size=1, max_size=30))
def test_a_word_is_spelled_out_only_when_it_came_often_and_is_one_of_few(words: list[str]) -> None:
    shape = discreet(_all([shape_of(word, 0, Places(), "state") for word in words]))
    assert shape.text is not None
    for word in shape.text.spelled.values():
        assert words.count(word) >= shapes.SPELLED_COUNT_MIN
        assert len(set(words)) <= shapes.WORDS_MAX
