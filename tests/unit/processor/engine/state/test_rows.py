"""Rows as they are stored: those of a newer version are refused."""

import msgspec
import pytest

from services.processor.engine.core.core import Core
from services.processor.engine.state.local import LocalMeta, MemoryStore
from services.processor.engine.state.meta import META_KEY, Meta, decode_meta, encode_meta
from services.processor.engine.state.rows import NewerFormat
from tests.unit.processor.engine.counting import APPLICATION


def test_state_of_a_newer_version_is_refused() -> None:
    with pytest.raises(NewerFormat, match="upgrade"):
        decode_meta(encode_meta(Meta({}, 0, 1, format=99)))


def test_state_of_a_newer_version_stops_a_core_that_has_nothing_to_replay() -> None:
    local = MemoryStore()
    local.write({}, LocalMeta(Meta({}, 0, 1, format=99), 1))
    with pytest.raises(NewerFormat, match="format 99"):
        Core(APPLICATION, 0, local)


def test_a_newer_version_is_found_in_any_meta_row() -> None:
    with pytest.raises(NewerFormat, match="format 99"):
        decode_meta(msgspec.msgpack.encode(["elsewhere", "later", None, 99, {"views": "2"}]))


def test_the_meta_row_cannot_be_a_stores_row() -> None:
    assert all(META_KEY[0] != spec.id for spec in APPLICATION.stores)
