"""Lookups: serves an application's lookups over HTTP. From a request to `LookupRequest`, from an answer to its form."""

from collections.abc import Mapping
from typing import Final

import msgspec
import structlog
from aiohttp import web
from yarl import URL

from services.processor.engine.application.access import LookFailed
from services.processor.engine.application.application import Lookup, LookupWrong, Objects
from services.processor.runtime.http.hops import PROXIED
from services.processor.runtime.http.lookup_answers import CANDIDATE, LookupAnswer, LookupAnswers, LookupRequest
from services.processor.runtime.http.object_streams import Busy, ObjectAnswers
from services.processor.runtime.kafka.ownership import Ownership
from services.processor.runtime.objects.object_store import ObjectMissing, ObjectsAway
from services.processor.runtime.questions import Unanswered
from services.rim.telemetry.metrics import counter
from shared.metrics import PROCESSOR_LOOKUPS

log = structlog.get_logger(__name__)

RETRY_AFTER_SECONDS: Final = 1
#: The prefix of the headers of a document's answer. They hold the fields that in other answers are beside `found`.
FIELD_PREFIX: Final = "Playhead-"

_fields: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Lookups:
    """Runs on the lookup thread's loop."""

    def __init__(self, answers: LookupAnswers, ownership: Ownership, objects: ObjectAnswers | None) -> None:
        self._answers = answers
        self._ownership = ownership
        self._objects = objects

    async def serve(self, lookup: Lookup, request: web.Request) -> web.StreamResponse:
        """Answers a request."""
        response: web.StreamResponse
        try:
            answer = await self._answers.answer(_parsed(lookup, request, request.rel_url))
            where, response = answer.where, await self._response(lookup, request, answer)
        except LookupWrong as error:
            where, response = "here", _reason(400, str(error))
        except Unanswered as error:
            self._ownership.want()
            where, response = "nowhere", later(str(error))
        except (Busy, ObjectsAway) as error:
            where, response = "here", later(str(error))
        except ObjectMissing as error:
            where, response = "here", _reason(404, f"the object {error} is not there any more")
        except LookFailed as error:
            log.exception("lookup_failed", error=str(error))
            where, response = "here", _reason(500, "the application raised on this question; see the log")
        counter(PROCESSOR_LOOKUPS).labels(where, str(response.status)).inc()
        return response

    async def _response(self, lookup: Lookup, request: web.Request, answer: LookupAnswer) -> web.StreamResponse:
        """The answer, in the form in which this lookup gives it to others than slots."""
        if not lookup.is_document or answer.status != 200 or PROXIED in request.headers:
            return json_response(answer.status, answer.body)
        objects_of = lookup.objects_of
        if objects_of is None or self._objects is None:
            return _document(answer.body)

        async def more(parameters: Mapping[str, str]) -> Objects | None:
            url = request.rel_url.update_query(parameters)
            try:
                rest = await self._answers.answer(_parsed(lookup, request, url))
            except (Unanswered, LookFailed) as error:
                raise ObjectsAway(f"the rest of the list cannot be read: {error}") from error
            return objects_of(_found(rest.body)) if rest.status == 200 else None

        return await self._objects.respond(request, objects_of(_found(answer.body)), more)


def _parsed(lookup: Lookup, request: web.Request, url: URL) -> LookupRequest:
    """Raises `LookupWrong`."""
    unknown = url.query.keys() - lookup.parameters - {"stale"}
    if unknown or url.query.get("stale", "allow") != "allow":
        known = "".join(f"{name}=..., " for name in sorted(lookup.parameters))
        raise LookupWrong(f"the only thing that may be asked for is {known}stale=allow")
    parts = {name: value for name, value in url.query.items() if name in lookup.parameters}
    candidates = list(enumerate(lookup.candidates_of({**parts, **request.match_info})))
    place = request.headers.get(CANDIDATE)
    return LookupRequest(
        lookup,
        candidates if place is None else [numbered for numbered in candidates if str(numbered[0]) == place],
        url.raw_path_qs,
        is_proxied=PROXIED in request.headers,
        accepts_stale="stale" in url.query,
    )


def json_response(status: int, body: bytes) -> web.Response:
    """A response that is JSON."""
    return web.Response(status=status, body=body, content_type="application/json")


def later(why: str) -> web.Response:
    """The response while no slot can answer."""
    response = _reason(503, why)
    response.headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    return response


def _reason(status: int, why: str) -> web.Response:
    return json_response(status, msgspec.json.encode({"why": why}))


def _document(body: bytes) -> web.Response:
    """Only what was found; the other fields of the answer are in headers."""
    fields = _fields.decode(body)
    found = fields.pop("found")
    headers = {
        FIELD_PREFIX + name.replace("_", "-").title(): bytes(raw).decode().strip('"') for name, raw in fields.items()
    }
    return web.Response(body=bytes(found), content_type="application/json", headers=headers)


def _found(body: bytes) -> bytes:
    return bytes(_fields.decode(body)["found"])
