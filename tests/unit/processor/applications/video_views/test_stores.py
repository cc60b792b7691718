"""What the stores of views keep in memory."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from services.processor.applications.video_views.live.board import LiveRow
from services.processor.applications.video_views.live.cohorts import CohortRow
from services.processor.applications.video_views.plays.session import Session
from services.processor.applications.video_views.stores import Dimensions
from services.processor.applications.video_views.view.seen import Closed
from services.processor.applications.video_views.view.state import ViewState


def structs_in(held: Any) -> Iterator[type[msgspec.Struct]]:
    """The structs of a type, with those of its fields."""
    if isinstance(held, type) and issubclass(held, msgspec.Struct):
        yield held
        for field in get_type_hints(held).values():
            yield from structs_in(field)
    for part in get_args(held):
        yield from structs_in(part)


@pytest.mark.parametrize("row", [ViewState, Dimensions, LiveRow, CohortRow, Closed, Session])
def test_the_garbage_collector_looks_at_no_struct_of_a_row(row: type[msgspec.Struct]) -> None:
    # They hold JSON values and each other, in no cycle. A partition keeps tens of thousands of them.
    looked_at = {struct.__name__ for struct in structs_in(row) if struct.__struct_config__.gc}
    assert not looked_at
