"""`/v1/exports`: jobs whose results are files."""

import asyncio
from typing import Final

import msgspec
from aiohttp import web

from services.accounts.core.roles import Permission
from services.accounts.http.access import ORGANISATION, Routing
from services.accounts.http.guard import principal_of
from services.accounts.looks import Audit
from services.query.core.problems import wrong
from services.query.core.question import parsed
from services.query.core.resources.exports import exports
from services.query.core.resources.exports.exports import MEDIA, AskedExports, Export, ExportList, Job, NewExport
from services.query.exporting import Exporting, NoRoomForExports, TooManyExports
from services.query.http.desk import Desk, need, sent
from services.rim.http.openapi import GUARDED, Operation
from services.rim.http.problems import problem_response
from shared.http.problems import Problem

BODY_BYTES_MAX: Final = 64 * 1024
#: For a body to come: until then it holds a connection of whoever passes it on.
BODY_SECONDS_MAX: Final = 10.0
_SLOW: Final = Problem(408, "The body does not come", "body-slow", f"Send it within {BODY_SECONDS_MAX:.0f} s.")
_ADD: Final = Operation(
    "/v1/exports",
    "Begin an export",
    Export,
    takes=NewExport,
    method="post",
    status=202,
    statuses=(400, *GUARDED, 408),
    tag="exports",
)
_LIST: Final = Operation(
    "/v1/exports", "Exports of the organisation", ExportList, AskedExports, statuses=(400, *GUARDED), tag="exports"
)
_ONE: Final = Operation("/v1/exports/{export_id}", "The state of an export", Export, tag="exports")
_FILE: Final = Operation(
    "/v1/exports/{export_id}/file",
    "The result of an export",
    None,
    media=tuple(MEDIA.values()),
    statuses=(*GUARDED, 409),
    tag="exports",
)
_DELETE: Final = Operation(
    "/v1/exports/{export_id}", "Delete an export and its file", None, method="delete", status=204, tag="exports"
)
OPERATIONS: Final = [_ADD, _LIST, _ONE, _FILE, _DELETE]


class ExportRoutes:
    """The routes. What an export needs depends on what it is of: so each handler looks at the permission."""

    def __init__(self, desk: Desk, exporting: Exporting | None, audit: Audit) -> None:
        self._desk = desk
        self._is_on = exporting is not None
        if exporting is not None:
            self._exporting = exporting
        self._audit = audit

    def add_to(self, routing: Routing) -> None:
        """Adds them."""
        for operation, handler in (
            (_ADD, self.add),
            (_LIST, self.all),
            (_ONE, self.one),
            (_FILE, self.file),
            (_DELETE, self.delete),
        ):
            method, answering = operation.method.upper(), self._desk.answering(handler if self._is_on else _off)
            routing.add(method, operation.path, answering, ORGANISATION, name=operation.name)

    async def add(self, request: web.Request) -> web.Response:
        """Begins one."""
        principal = principal_of(request)
        if not principal.may(Permission.READ_VIEWS):
            # No body changes that: it is not waited for.
            need(request, Permission.READ_METRICS)
        try:
            async with asyncio.timeout(BODY_SECONDS_MAX):
                new = await _new(request)
        except TimeoutError:
            return problem_response(_SLOW)
        need(request, _needed(new.of))
        wanted = self._exporting.understood(new, self._desk.caller(request).admit)
        # What cannot be noted is not made.
        await self._desk.look(request, wanted.question)
        try:
            job = await self._exporting.add(
                new, wanted, organisation_id=principal.organisation_id, actor=principal.name
            )
        except TooManyExports:
            return problem_response(Problem(429, "Too many exports under way", "too-many-exports"), retry_seconds=30)
        except NoRoomForExports:
            return problem_response(
                Problem(503, "There is no room for exports", "exports-full", "Delete some, or wait until they expire.")
            )
        # Before its first row can be fetched.
        await self._audit.note(self._desk.actor(request), "made_export", f"{new.of} {job.id}")
        return sent(job.shown, status=202)

    async def all(self, request: web.Request) -> web.Response:
        """Those of the organisation that the asker may see."""
        asked = parsed(AskedExports, list(request.query.items()))
        known = await self._exporting.all(principal_of(request).organisation_id)
        seen = [job for job in known if _is_seen(request, job)]
        return sent(exports.page_of(asked, seen))

    async def one(self, request: web.Request) -> web.Response:
        """The state of one."""
        job = await self._seen(request)
        return _unknown() if job is None else sent(job.shown)

    async def file(self, request: web.Request) -> web.StreamResponse:
        """The result of one."""
        job = await self._seen(request)
        if job is None:
            return _unknown()
        if job.state != "done":
            return problem_response(Problem(409, "The export has no file", "export-not-done", f"It is {job.state}."))
        await self._audit.note(self._desk.actor(request), "looked_at_viewer", *job.viewers)
        await self._audit.note(self._desk.actor(request), "fetched_export", f"{job.of} {job.id}")
        name = f"playhead-{job.of}-{job.id[:8]}.{job.format}"
        return web.FileResponse(
            self._exporting.result(job),
            headers={"Content-Type": MEDIA[job.format], "Content-Disposition": f'attachment; filename="{name}"'},
        )

    async def delete(self, request: web.Request) -> web.Response:
        """Deletes one."""
        job = await self._seen(request)
        if job is None:
            return _unknown()
        await self._audit.note(self._desk.actor(request), "deleted_export", f"{job.of} {job.id}")
        await self._exporting.delete(job)
        return web.Response(status=204)

    async def _seen(self, request: web.Request) -> Job | None:
        job = await self._exporting.job(request.match_info["export_id"])
        return job if job is not None and _is_seen(request, job) else None


def _needed(of: exports.Of, *, is_of_viewers: bool = False) -> Permission:
    return Permission.READ_VIEWS if of == "views" or is_of_viewers else Permission.READ_METRICS


def _is_seen(request: web.Request, job: Job) -> bool:
    """Whether the asker is of its organisation, and may see all that it has: rights may have changed since."""
    principal = principal_of(request)
    is_own = principal.organisation_id == job.organisation_id
    may_read = principal.may(_needed(job.of, is_of_viewers=job.is_of_viewers))
    return is_own and may_read and exports.may_see(principal.scope, job.whose)


async def _new(request: web.Request) -> NewExport:
    """The body; raises `Wrong`."""
    if request.content_type != "application/json":
        raise wrong("Content-Type", "application/json")
    data = bytearray()
    async for chunk in request.content.iter_any():
        data += chunk
        if len(data) > BODY_BYTES_MAX:
            raise wrong("body", f"a body has at most {BODY_BYTES_MAX} bytes")
    try:
        return msgspec.json.decode(bytes(data), type=NewExport)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise wrong("body", str(error)) from None


async def _off(_: web.Request) -> web.Response:
    return problem_response(
        Problem(404, "Nothing is here", "exports-off", "QUERY_EXPORTS_DIR is not set: there is no room for exports.")
    )


def _unknown() -> web.Response:
    return problem_response(Problem(404, "There is no such export", "unknown-export"))
