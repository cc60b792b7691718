"""`/v1/audit`: who did what, when, from where."""

import csv
import io
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Final, Literal

import msgspec
from aiohttp import web

from services.accounts.http.access import TEAM_MANAGEMENT
from services.accounts.http.v1.operations import Call, Operation, PageAsked, ms
from services.accounts.management import Management
from services.accounts.service import Accounts
from services.accounts.store.audit import NEWEST, AuditRow
from services.rim.http.cells import plain

_Text = Annotated[str, msgspec.Meta(max_length=300)]
_COLUMNS: Final = ("id", "at_ms", "actor_kind", "actor", "address", "action", "target", "details")


class Entry(msgspec.Struct, frozen=True):
    """One row: who (`actor`), what (`action`, `target`, `details`), when, from which address."""

    id: int
    at_ms: int
    actor_kind: str
    actor: str
    address: str | None
    action: str
    target: str
    details: dict[str, Any]


class Entries(msgspec.Struct, frozen=True):
    """A page of the log."""

    entries: list[Entry]
    next: str | None


class EntriesAsked(PageAsked, frozen=True, forbid_unknown_fields=True):
    """A page, of one action or of one actor."""

    action: _Text = ""
    actor: _Text = ""


class ExportAsked(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """In which form."""

    format: Literal["csv", "jsonl"] = "jsonl"


class AuditOperations:
    """The operations."""

    def __init__(self, accounts: Accounts, management: Management) -> None:
        self._accounts = accounts
        self._management = management

    def operations(self) -> list[Operation]:
        """All of them."""
        return [
            Operation(
                "get",
                "/v1/audit",
                "The audit log, the newest rows first",
                TEAM_MANAGEMENT,
                self.entries,
                Entries,
                query=EntriesAsked,
            ),
            Operation(
                "get",
                "/v1/audit/export",
                "The whole audit log as CSV or JSON lines",
                TEAM_MANAGEMENT,
                self.export,
                Entry,
                query=ExportAsked,
                media=("text/csv", "application/jsonl"),
            ),
        ]

    async def entries(self, call: Call) -> Entries:
        """The newest first."""
        asked: EntriesAsked = call.query
        wanted = call.page
        before = wanted.number
        rows = await self._management.audit(
            call.principal,
            before_id=NEWEST if before is None else before,
            rows_max=wanted.rows_max,
            action=asked.action,
            actor=asked.actor,
        )
        page, after = wanted.cut(rows, lambda row: str(row.id))
        return Entries([_entry(row) for row in page], after)

    async def export(self, call: Call) -> web.StreamResponse:
        """The export is an entry itself. An answer that breaks off ends without its last chunk."""
        is_csv = call.query.format == "csv"
        lines: Callable[[Iterable[Entry]], bytes] = _csv if is_csv else _json_lines
        async with self._accounts.turns.of(call.principal.organisation_id):
            await self._accounts.note(call.actor, "exported_audit", call.query.format)
        rows = self._management.whole_audit(call.principal)
        first: list[AuditRow] = await anext(rows, [])
        response = web.StreamResponse(
            headers={
                "Content-Type": "text/csv; charset=utf-8; header=present" if is_csv else "application/jsonl",
                "Content-Disposition": f'attachment; filename="audit.{call.query.format}"',
            }
        )
        await response.prepare(call.request)
        if is_csv:
            await response.write((",".join(_COLUMNS) + "\r\n").encode())
        await response.write(lines(map(_entry, first)))
        try:
            async for more in rows:
                await response.write(lines(map(_entry, more)))
        except Exception:
            # What lacks something must not look whole.
            if call.request.transport is not None:
                call.request.transport.abort()
            raise
        await response.write_eof()
        return response


def _entry(row: AuditRow) -> Entry:
    return Entry(row.id, ms(row.at), row.actor_kind, row.actor, row.address, row.action, row.target, row.details)


def _json_lines(entries: Iterable[Entry]) -> bytes:
    return b"".join(msgspec.json.encode(one) + b"\n" for one in entries)


def _csv(entries: Iterable[Entry]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text)
    for one in entries:
        values = [getattr(one, name) for name in _COLUMNS]
        writer.writerow([_cell(value) for value in values])
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    """A text that no spreadsheet takes for a formula."""
    if isinstance(value, dict):
        value = msgspec.json.encode(value).decode()
    return plain("" if value is None else str(value))
