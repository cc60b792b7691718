"""`POST /recordings/<session>?sequence=n`: translates HTTP to and from uploads; decides only the statuses."""

import orjson
from aiohttp import web

from services.collector.admission.retry_later import RetryLater
from services.collector.http.answers import STATUSES, native_retry
from services.collector.http.reception import Reception
from services.collector.http.recordings.uploads import Uploads
from services.collector.http.routes import key_of
from services.collector.intake.post import InvalidInput
from services.collector.intake.recording import head_of


class RecordingRoutes:
    """The handler of session recordings."""

    def __init__(self, reception: Reception, uploads: Uploads) -> None:
        self._reception = reception
        self._uploads = uploads

    async def upload(self, request: web.Request) -> web.Response:
        """One payload, of any content type, kept as it came; 200 once all of it is on all in-sync replicas."""
        reception, uploads = self._reception, self._uploads
        try:
            post = reception.post(request, key=key_of(request))
            head = head_of(
                post,
                request.match_info["session"],
                request.query.get("sequence"),
                request.content_length,
                rules=reception.rules(),
                bytes_max=uploads.bytes_max,
            )
            with reception.charging(head.customer_id, head.size_bytes) as charge:
                stored = await uploads.receive(head, request.content, post.client.site, charge)
        except InvalidInput as invalid:
            return _answer(STATUSES.get(invalid.reason, 400), {"reason": invalid.reason, "detail": invalid.detail})
        except RetryLater as retry:
            answer = native_retry(retry)
            return _answer(answer.status, answer.body, answer.headers)
        receipt = {
            "status": "stored",
            "session": head.session_id,
            "sequence": head.sequence,
            "bytes": stored.size_bytes,
            "chunks": stored.chunks,
            "sha256": stored.sha256,
        }
        return _answer(200, receipt)


def _answer(status: int, body: dict[str, object], headers: dict[str, str] | None = None) -> web.Response:
    response = web.Response(body=orjson.dumps(body), status=status, headers=headers, content_type="application/json")
    if status != 200:
        # What is left of the body, up to all of it, would be taken for the next request.
        response.force_close()
    return response
