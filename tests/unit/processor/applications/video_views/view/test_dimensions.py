"""Dimensions of a view: what a row has of them, and what a cohort is named by."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from services.processor.applications.video_views.beacons.step import DERIVED
from services.processor.applications.video_views.view.dimensions import stated, stated_of

NAMES = ("cdn", "country", "asn", "device")
VALUES = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["one", "two", "", None]))


@given(VALUES, st.lists(VALUES, max_size=3), st.lists(st.sampled_from(NAMES), unique=True))
def test_some_fields_are_stated_as_all_are(
    client: dict[str, Any], found: list[dict[str, Any]], names: list[str]
) -> None:
    dimensions = client | ({DERIVED: [[1, 0, 0, 0, 0, values] for values in found]} if found else {})

    whole = stated(dimensions)

    assert stated_of(dimensions, names) == {name: whole[name] for name in names if name in whole}
