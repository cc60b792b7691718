"""Row turns: a row's deadline has come, or its media request was worked; and what follows where the application raises on it."""

from collections.abc import Callable
from typing import Any

from services.processor.engine.application.application import Application, Processor, ReleasingRows, StoreSpec
from services.processor.engine.application.failures import NOT_THE_APPLICATION, FireFailed
from services.processor.engine.application.media_requests import MediaOutcome, MediaRequest, TakingMedia
from services.processor.engine.core.context import CoreContext
from services.processor.engine.core.quarantine import Quarantine
from services.processor.engine.state.layers import Layers


class RowCallbacks:
    """Tells a core's processor of its rows. What it raises names the row; a row in quarantine is rejected in its turn."""

    def __init__(
        self,
        application: Application,
        processor: Processor,
        context: CoreContext,
        layers: Layers,
        *,
        quarantine: Quarantine,
        note_failure: Callable[[], None],
    ) -> None:
        self._application = application
        self._specs = {spec.id: spec for spec in application.stores}
        self._processor = processor
        self._context = context
        self._layers = layers
        self._quarantine = quarantine
        self._note_failure = note_failure

    def fire(self, key: bytes, deadline_ms: int) -> None:
        """The clock has reached the deadline of the row of `key`. Raises `FireFailed` and what the local store raises."""
        spec = self._specs[key[0]]
        if (key, deadline_ms) in self._quarantine.rows:
            self._reject(spec, key, deadline_ms)
            return
        try:
            self._processor.fire(spec, key[1:])
            self._layers.check(self._quarantine.suspects)
            now = self._layers.entry(key)
            if now is not None and now.deadline_ms == deadline_ms:
                raise RuntimeError(f"{self._application.name} left it due")
        except NOT_THE_APPLICATION:
            raise
        except Exception as error:
            raise FireFailed(spec.name, key, deadline_ms, error) from error

    def media_done(self, key: bytes, request: MediaRequest, outcome: MediaOutcome) -> None:
        """The media request under `key` was worked. Raises as `fire` does."""
        media, standing = self._application.media, self._context.pending_media
        assert media is not None
        # No two requests begin at one record, so this names it as a deadline names a row that is due.
        row_key, place = standing.row_key(key), request.runs[0][0]
        if (row_key, place) in self._quarantine.rows:
            self._reject(media, row_key, place)
            standing.forget(key)
            return
        standing.end(key)
        assert isinstance(self._processor, TakingMedia), f"{self._application.name} does not say what follows"
        try:
            self._processor.media_done(key, request, outcome)
            self._layers.check(self._quarantine.suspects)
        except NOT_THE_APPLICATION:
            raise
        except Exception as error:
            raise FireFailed(media.name, row_key, place, error) from error

    def _reject(self, spec: StoreSpec[Any], key: bytes, deadline_ms: int) -> None:
        """The row, and with it what belongs to it."""
        if isinstance(self._processor, ReleasingRows) and (key, deadline_ms) not in self._quarantine.stuck_rows:
            try:
                self._processor.release(spec, key[1:])
            except NOT_THE_APPLICATION:
                raise
            except Exception as error:
                raise FireFailed(spec.name, key, deadline_ms, error) from error
        for other in self._application.stores:
            row_key = bytes([other.id]) + key[1:]
            if spec.name in {other.name, other.goes_with} and self._layers.stands(row_key):
                origin = f"{self._application.name}/{self._context.partition}/store {other.name}"
                payload = self._layers.discard(row_key)
                self._context.draft.reject(key[1:], payload, "fire_failed", "the application raised on it", origin)
        self._note_failure()
