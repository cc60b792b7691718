"""How lookups and questions read a core's rows: those that are committed."""

from collections.abc import Iterator
from contextlib import contextmanager

from services.processor.engine.application.application import Lookup
from services.processor.engine.application.requests import Query
from services.processor.engine.state.failures import NOT_THE_APPLICATION
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.map_spec import MapSpec
from services.processor.engine.state.store_spec import Row, StoreSpec


class LookFailed(RuntimeError):
    """The application raised on a question."""


class CommittedReading:
    """The `Rows` of one lookup, and the `CommittedRows` of one question."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers

    def get(self, spec: StoreSpec[Row], key: bytes) -> Row | None:
        row: Row | None = self._layers.committed_row(bytes([spec.id]) + key)
        return row

    def items(
        self,
        spec: MapSpec[Row],
        owner: bytes,
        limit: int,
        *,
        prefix: bytes = b"",
        after: bytes | None = None,
        before: bytes | None = None,
    ) -> list[tuple[bytes, Row]]:
        entries = spec.range_of(owner, prefix, after, before)
        return [(key[len(entries.owner) :], row) for key, row in self._layers.committed_entries(entries, limit)]

    def page(self, spec: StoreSpec[Row], after: bytes, limit: int) -> list[tuple[bytes, Row]]:
        return [(key[1:], row) for key, row in self._layers.committed_page(spec.id, after, limit)]


def look(layers: Layers, lookup: Lookup, key: bytes) -> bytes | None:
    """Answers a lookup from committed rows alone, as JSON. Raises `LookFailed`, `StoreFailed` or `NewerFormat`.

    What is not committed may be dropped: the next answer would be an older one.
    """
    with _failures_named(lookup.path, key):
        return lookup.answer(CommittedReading(layers), key)


def ask(layers: Layers, query: Query, subject: bytes) -> bytes | None:
    """Answers a question from committed rows alone. Raises as `look` does."""
    with _failures_named(query.name, subject):
        return query.answer(CommittedReading(layers), subject)


@contextmanager
def _failures_named(what: str, subject: bytes) -> Iterator[None]:
    try:
        yield
    except NOT_THE_APPLICATION:
        raise
    except Exception as error:
        raise LookFailed(f"{what}: {subject!r}: {type(error).__name__}: {error}") from error
