"""A part of the demo, and the services that it uses. A part belongs to one application: its slot, its input, its truth."""

import http.client
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from deploy.demo.comparing.compare import Line
from deploy.demo.comparing.observe import table_rows
from services.processor.settings import ApplicationName
from shared.settings import Settings

#: For one request, seconds: nothing it asks for takes a tenth of it on a machine that does little else.
_REQUEST_SECONDS_MAX: Final = 30.0
#: A collector that is busy, or has taken as much as it may in this second, stores nothing and says so.
_AGAIN: Final = frozenset({http.HTTPStatus.TOO_MANY_REQUESTS, http.HTTPStatus.SERVICE_UNAVAILABLE})
_ATTEMPTS_MAX: Final = 30
#: What `ask` has of a slot that is not there yet, or does not work the key's partition yet.
_UNANSWERED: Final = frozenset({0, http.HTTPStatus.SERVICE_UNAVAILABLE})


class Refused(RuntimeError):
    """The collector did not take what a part has sent; the text has its answer."""


@dataclass(frozen=True)
class Running:
    """The running demo, as a part uses it."""

    settings: Settings
    collector_url: str
    #: Where the part's own slot answers lookups, and the token for it.
    lookup_url: str
    lookup_token: str
    warehouse: Path
    #: The dashboard.
    page_url: str
    #: Path of the dashboard → an address that logs in and leads there, once.
    page_link: Callable[[str], str]
    #: Waits until the condition holds or its time is over, while all processes are watched; whether it holds.
    until: Callable[[Callable[[], bool]], bool]
    #: Prints a line of output.
    say: Callable[[str], None]
    #: Before a request that was not stored is sent again.
    again_seconds: float = 1.0

    def post(self, path: str, body: bytes, content_type: str = "application/json") -> None:
        """Posts to the collector, again where it asks for that. Raises `Refused` for any other answer but 2xx, and `OSError`."""
        for attempt in range(_ATTEMPTS_MAX):
            status, answer = self._ask(self.collector_url, "POST", path, body, {"Content-Type": content_type})
            if status // 100 == 2:
                return
            if status not in _AGAIN or attempt == _ATTEMPTS_MAX - 1:
                raise Refused(f"POST {path}: {status} {answer[:500]!r}")
            time.sleep(self.again_seconds)

    def look(self, path: str) -> Any:
        """The answer of the part's slot; None if it has nothing, or cannot answer yet."""
        status, answer = self.ask("GET", path)
        return answer if status == http.HTTPStatus.OK else None

    def found(self, path: str) -> Any:
        """The answer of the part's slot, which is asked again while it cannot answer; None if it has nothing."""
        status, answer = self.answered("GET", path)
        return answer if status == http.HTTPStatus.OK else None

    def answered(
        self, method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """As `ask`. A slot that cannot answer yet gets the request again, until there is no time left."""
        answers: list[tuple[int, Any]] = []

        def is_answered() -> bool:
            answers.append(self.ask(method, path, document, headers))
            return answers[-1][0] not in _UNANSWERED

        self.until(is_answered)
        return answers[-1]

    def ask(
        self, method: str, path: str, document: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """What the part's slot answers: status, 0 without an answer, and JSON, None without any."""
        given = {"Authorization": f"Bearer {self.lookup_token}", "Content-Type": "application/json"} | dict(
            headers or {}
        )
        body = None if document is None else msgspec.json.encode(document)
        try:
            status, answer = self._ask(self.lookup_url, method, path, body, given)
        except OSError:
            return 0, None
        return status, msgspec.json.decode(answer) if answer else None

    def rows(self, table: str, columns: str = "*", where: str = "true") -> list[dict[str, Any]]:
        """Rows of a table of the warehouse, read without Spark; none while there is no table."""
        return table_rows(self.warehouse / table, f"SELECT {columns} FROM t WHERE {where}") or []  # noqa: S608 - ours

    def _ask(
        self, url: str, method: str, path: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        where = urlsplit(url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=_REQUEST_SECONDS_MAX)
        with closing(connection):
            try:
                connection.request(method, path, body, dict(headers))
                answer = connection.getresponse()
                return answer.status, answer.read()
            except http.client.HTTPException as error:
                raise OSError(f"{method} {path}: {error!r}") from error


@dataclass(frozen=True)
class Part:
    """The demo of one application."""

    application: ApplicationName
    #: Sends its input, waits for the output, and prints both: a line that differs fails the demo.
    play: Callable[[Running], Sequence[Line]]
    #: Settings of its slot that differ from the defaults, so that a minute is enough.
    environ: Mapping[str, str] = field(default_factory=dict)


def line(name: str, observed: object, truth: object) -> Line:
    """A line of the table: what came out, and what must."""
    return Line(name, _shown(observed), _shown(truth), ok=observed == truth)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
