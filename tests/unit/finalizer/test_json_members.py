"""A viewer is named by a member of a beacon, in any spelling; the same text elsewhere names nobody."""

import pytest

from services.finalizer.warehouse.json_strings import holds_member

NAMES = ("viewer_id", "mux_viewer_id")


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        (b'{"attrs":{"mux_viewer_id":"anna"}}', True),
        (b'{"viewer_id" : "anna"}', True),
        (b'{"viewer\\u005fid":"ann\\u0061"}', True),
        (b'{"video_title":"anna"}', False),
        (b'{"viewer_id":"anna and more"}', False),
        (b'{"viewer_id":1,"video_title":"anna"}', False),
        (b'{"viewer_id":["anna"]}', False),
        (b'{"title":"viewer_id","x":"anna"}', False),
        (b'{"viewer_id":"anna', False),
        (b"", False),
    ],
)
def test_a_member_of_the_name_has_the_value(text: bytes, is_named: bool) -> None:
    assert holds_member(text, NAMES, "anna") == is_named
