"""The stores that an application is given: deadlines, and what it has not declared."""

import dataclasses

import pytest

from services.processor.engine.application.tables import Tables
from services.processor.engine.core.context import CoreContext
from services.processor.engine.state.cache import Cache
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.local import MemoryStore
from tests.unit.processor.engine.counting import APPLICATION, COUNTS


def test_what_is_committed_is_never_due_at_its_clock() -> None:
    context = CoreContext(
        APPLICATION, 0, Layers((COUNTS,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000)), Tables(())
    )
    store = context.store(COUNTS)
    context.clock_ms = 5000
    store.put(b"a", 1, 4000)
    assert store.deadline_ms(b"a") == 5001


def test_an_earlier_deadline_stays_where_a_row_is_put_by_a_time() -> None:
    context = CoreContext(
        APPLICATION, 0, Layers((COUNTS,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000)), Tables(())
    )
    store = context.store(COUNTS)
    context.clock_ms = 5000
    deadlines_ms = []
    for deadline_ms in (9000, 9500, 8000, 4000):
        store.put_by(b"a", deadline_ms, deadline_ms)
        deadlines_ms.append(store.deadline_ms(b"a"))
        assert store.get(b"a") == deadline_ms
    assert deadlines_ms == [9000, 9000, 8000, 5001]
    store.delete(b"a")
    store.put_by(b"a", 1, 9500)
    assert store.deadline_ms(b"a") == 9500


def test_a_store_that_was_not_declared_is_refused() -> None:
    context = CoreContext(
        APPLICATION, 0, Layers((COUNTS,), MemoryStore(), Cache(rows_max=10, bytes_max=1_000)), Tables(())
    )
    with pytest.raises(ValueError, match="has not declared store other"):
        context.store(dataclasses.replace(COUNTS, name="other"))
