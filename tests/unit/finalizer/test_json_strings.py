"""An id is found in JSON as a whole value, however it is escaped, and nowhere else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.finalizer.warehouse.json_strings import holds_value


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b'{"viewer":"7"}', "7"),
        (b'{"a":{"b":["x","7"]}}', "7"),
        (rb'{"viewer":"\u0037"}', "7"),
        (rb'{"viewer":"a\/\"b\""}', 'a/"b"'),
        ('{"viewer":"zoë 😀"}'.encode(), "zoë 😀"),
        (rb'{"viewer":"zo\u00EB \ud83d\ude00"}', "zoë 😀"),
        # Cut off, as a record that was too large.
        (b'{"viewer":"7","title":"A long', "7"),
        (b'"7"', "7"),
    ],
)
def test_a_value_is_found(text: bytes, wanted: str) -> None:
    assert holds_value(text, wanted)


@pytest.mark.parametrize(
    "text",
    [
        b'{"viewer":"17","beacons":7,"7":"x","title":"no. 7"}',
        b'{"7" : 1}',
        rb'{"title":"she said \"7\""}',
        rb'{"title":"a\",\"7\",\"b"}',
        b'{"viewer":"7',
        rb'{"viewer":"\u003"}',
        b"viewer=7",
        b"",
    ],
)
def test_what_only_looks_like_it_is_not(text: bytes) -> None:
    assert not holds_value(text, "7")


def test_what_stands_between_two_strings_is_no_value() -> None:
    assert not holds_value(b'["a,","b"]', ",")


@given(st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_it_agrees_with_a_parser(value: str, wanted: str, ascii_only: bool) -> None:
    try:
        text = json.dumps({"k": [value, {wanted + "!": None}]}, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:
        return
    assert holds_value(text, wanted) == (value == wanted)
    assert holds_value(text, value)
