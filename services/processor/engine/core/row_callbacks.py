"""RowCallbacks: calls the processor about a row, when its deadline is reached or its media request is done."""

from collections.abc import Callable
from typing import Any

from services.processor.engine.application.application import Application, FiringTimers, Processor
from services.processor.engine.application.media_requests import MediaHandler, MediaOutcome, MediaRequest
from services.processor.engine.core.attempts import Attempts
from services.processor.engine.core.context import CoreContext
from services.processor.engine.state.failures import NOT_THE_APPLICATION, FireFailed
from services.processor.engine.state.layers import Layers
from services.processor.engine.state.store_spec import StoreSpec
from services.processor.engine.state.timers_spec import TimersSpec


class RowCallbacks:
    """What the processor raises names the row. While the core works carefully, the row is rejected at once instead."""

    def __init__(
        self,
        application: Application,
        processor: Processor,
        context: CoreContext,
        layers: Layers,
        attempts: Attempts,
    ) -> None:
        self._application = application
        self._specs = {spec.id: spec for spec in application.stores}
        self._by_name = {spec.name: spec for spec in application.stores}
        self._processor = processor
        self._context = context
        self._layers = layers
        self._attempts = attempts

    def fire(self, key: bytes, deadline_ms: int, at: int) -> None:
        """The clock has reached the deadline of the row of `key`. Raises `FireFailed` and what the local store raises."""
        spec = self._specs[key[0]]
        if isinstance(spec, TimersSpec):
            self._fire_timer(spec, key, at)
            return

        def fire() -> None:
            self._processor.fire(spec, key[1:])
            now = self._layers.entry(key)
            if now is not None and now.deadline_ms == deadline_ms:
                raise RuntimeError(f"{self._application.name} left it due")

        self._call(spec, key, fire, at)

    def _fire_timer(self, spec: TimersSpec, row_key: bytes, at: int) -> None:
        processor = self._processor
        assert isinstance(processor, FiringTimers), f"{self._application.name} does not say what timers do"
        key, name = spec.key_and_name(row_key[1:])

        def fire() -> None:
            self._layers.delete(row_key)
            processor.fire_timer(spec, key, name)

        # Without its timer the row that it is of might stay for ever: where this fails, that row is rejected.
        of = self._by_name[spec.goes_with or ""]
        self._call(spec, row_key, fire, at, rejects=(of, bytes([of.id]) + key))

    def media_done(self, key: bytes, request: MediaRequest, outcome: MediaOutcome, at: int) -> None:
        """The media request under `key` is done. Raises as `fire` does."""
        media, pending, processor = self._application.media, self._context.pending_media, self._processor
        assert media is not None
        assert isinstance(processor, MediaHandler), f"{self._application.name} does not say what follows"

        def done() -> None:
            pending.end(key)
            processor.media_done(key, request, outcome)
            if outcome == "refused":
                self._context.reject_media(key, request)

        self._call(media, pending.row_key(key), done, at)

    def _call(
        self,
        spec: StoreSpec[Any],
        row_key: bytes,
        call: Callable[[], None],
        at: int,
        *,
        rejects: tuple[StoreSpec[Any], bytes] | None = None,
    ) -> None:
        """Makes a callback about a row; where it fails, that row is rejected, or the one that `rejects` names."""
        if self._attempts.is_on(at) or row_key[1:] in self._attempts.rows:
            self._attempts.rows.discard(row_key[1:])
            rejected, rejected_key = rejects or (spec, row_key)
            self._attempts.call(rejected, rejected_key, call, at)
            return
        try:
            call()
        except NOT_THE_APPLICATION:
            raise
        except Exception as error:
            raise FireFailed(spec.name, row_key, error) from error
