"""An id is found in JSON as a whole value, however it is escaped, and nowhere else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.finalizer.warehouse.json_strings import holds_anywhere, holds_member, holds_value


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
        b'{"viewer":"7\\',
        rb'{"viewer":"\u003"}',
        b"viewer=7",
        b"",
    ],
)
def test_what_only_looks_like_it_is_not(text: bytes) -> None:
    assert not holds_value(text, "7")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b'{"viewer":"7"}', "7"),
        (b"viewer=7&title=x", "7"),
        (b"[7,", "7"),
        (b"\x0a\x0dviewer-1234567\xff", "viewer-1234567"),
        # A length that is a letter stands before a string of protobuf.
        (b"\x0aAviewer-1234567", "viewer-1234567"),
        (b"viewer=zo%C3%AB+%f0%9f%98%80", "zo\u00eb \U0001f600"),
        ("viewer=zo\u00eb".encode(), "zo\u00eb"),
    ],
)
def test_what_is_no_json_is_searched_as_bytes(text: bytes, wanted: str) -> None:
    assert holds_anywhere(text, wanted)


@pytest.mark.parametrize(
    "text", [b'{"viewer":"17","beacons":7}', b'{"title":"no. 7"}', b"viewer=17", b"viewer=7a", b"7", b"%377", b""]
)
def test_json_without_the_value_and_longer_words_do_not_count(text: bytes) -> None:
    assert not holds_anywhere(text, "7")


def test_what_stands_between_two_strings_is_no_value() -> None:
    assert not holds_value(b'["a,","b"]', ",")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", [b"", b"\\"])
def test_a_string_without_an_end_is_read_once_however_many_quotes_it_escapes(end: bytes) -> None:
    # For each of them once more, that would take an hour.
    text = b'{"a":"' + rb"a\"" * 330_000 + end
    assert not holds_value(text, "7")
    assert not holds_anywhere(text, "7")
    assert not holds_member(text, ["a"], "7")


@given(st.text(max_size=20), st.text(max_size=20), st.booleans())
def test_it_agrees_with_a_parser(value: str, wanted: str, ascii_only: bool) -> None:
    try:
        text = json.dumps({"k": [value, {wanted + "!": None}]}, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:
        return
    assert holds_value(text, wanted) == (value == wanted)
    assert holds_value(text, value)
