"""A text has a pattern as a whole: nothing stands before it or behind it, no line break either."""

from typing import Annotated, Any

import jsonschema
import msgspec
import pytest

from shared.http.patterns import whole
from shared.schemas.beacon import CUSTOMER_ID


class Named(msgspec.Struct):
    id: Annotated[str, msgspec.Meta(pattern=whole(CUSTOMER_ID.pattern))]


@pytest.mark.parametrize("text", ["acme", "a", "A-z_9", "x" * 64])
def test_what_matches_is_taken(text: str) -> None:
    assert msgspec.convert({"id": text}, Named).id == text
    assert _validator().is_valid({"id": text})


@pytest.mark.parametrize("text", ["acme\n", "\nacme", "a\nb", "", " acme", "x" * 65, "acme\n\n", "acme\r"])
def test_what_only_begins_or_ends_so_is_refused(text: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"id": text}, Named)
    assert not _validator().is_valid({"id": text})


def test_alternatives_are_whole_each() -> None:
    kind: Any = Annotated[str, msgspec.Meta(pattern=whole("null|https://x"))]
    for text, is_right in (("null", True), ("https://x", True), ("nullx", False), ("xhttps://x", False)):
        if is_right:
            assert msgspec.convert(text, kind) == text
        else:
            with pytest.raises(msgspec.ValidationError):
                msgspec.convert(text, kind)


def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(msgspec.json.schema(Named))
