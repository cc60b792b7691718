"""What the stores of views keep in memory."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from services.processor.applications.video_views.beacons.step import Step
from services.processor.applications.video_views.live.rows import CohortRow, LiveRow
from services.processor.applications.video_views.plays.session import Session
from services.processor.applications.video_views.stores import Dimensions
from services.processor.applications.video_views.view.folded import (
    bytes_of,
    newest_step,
    recent_bytes,
    recent_heads,
    recent_steps,
)
from services.processor.applications.video_views.view.order.seen import Closed
from services.processor.applications.video_views.view.state import ViewState, new_view


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


def test_steps_that_can_still_move_stay_packed_as_the_row_has_them() -> None:
    view, dimensions = new_view("native", 1_000), dict[str, Any]()
    steps = [Step(0, at_ms, at_ms + 40, at_ms + 40, 40, True, tie=1) for at_ms in (1_000, 2_000, 3_000)]
    for step in steps:
        view.order.take_step(view.folded, dimensions, step)
    stored = msgspec.msgpack.encode(view)
    found = msgspec.msgpack.Decoder(ViewState).decode(stored)
    assert [type(one) for one in found.folded.recent] == [msgspec.Raw] * 3
    assert recent_steps(found.folded) == steps
    assert newest_step(found.folded) == steps[-1]
    assert recent_bytes(found.folded) == sum(map(bytes_of, steps))
    assert [msgspec.to_builtins(one) for one in recent_heads(found.folded)] == [
        msgspec.to_builtins(one)[:5] for one in steps
    ]
    assert msgspec.msgpack.encode(found) == stored
    assert msgspec.msgpack.decode(stored)[4][2] == msgspec.to_builtins(steps)
