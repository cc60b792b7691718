"""The demo's parts: what each sends, folded in memory, is what it expects; and a system that loses something is reported."""

import dataclasses
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import msgspec
import pyarrow as pa
import pytest

from deploy.demo.applications import catalogue
from deploy.demo.applications.part import Part, Refused, Running
from services.collector.intake.api_calls import api_calls
from services.collector.intake.otlp import otlp
from services.collector.intake.post import Rules
from services.finalizer import row_topics
from services.processor.catalogue import APPLICATIONS
from services.processor.engine.driver import Driver
from shared import codec, topics
from shared.partitioning import api_key, trace_key
from shared.schemas.apis.call import ApiCall
from shared.schemas.span import Span
from shared.settings import Settings
from tests.unit.collector.intake.bodies import post
from tests.unit.processor.applications.users.table import Table

#: Longer than anything in the parts takes.
STEP_MS = 20_000
#: Parts whose input can be folded here: those of spans and calls.
PARTS = [part for part in catalogue.ALL if part.application in {"traces", "api_schemas", "api_baselines"}]
#: Where a demo without processes runs.
NOWHERE: dict[str, Any] = {
    "settings": Settings(),
    "collector_url": "",
    "lookup_url": "",
    "lookup_token": "",
    "warehouse": Path(),
    "page_url": "",
    "page_link": str,
}


@dataclasses.dataclass(frozen=True)
class InMemory(Running):
    """A demo without processes: collector and finalizer are stood in for, and the application is the real one."""

    part: Part | None = None
    driver: Driver | None = None
    #: Which posts get lost: by their number.
    loses: Callable[[int], bool] = lambda _: False
    posts: list[str] = dataclasses.field(default_factory=list)

    def post(self, path: str, body: bytes, content_type: str = "application/json") -> None:
        assert self.driver is not None
        self.posts.append(path)
        if self.loses(len(self.posts)):
            return
        parse = otlp.parse_spans if path == "/v1/traces" else api_calls.parse_calls
        parsed = parse(post(body, key="default", content_type=content_type), Rules())
        assert parsed.rejected == []
        now_ms = time.time_ns() // 1_000_000
        for one in parsed.accepted:
            if isinstance(one, Span):
                key = trace_key(one.customer_id, one.trace_id)
                self.driver.pipe(topics.SPANS, key, codec.SPAN.encode(one), at_ms=now_ms)
            elif isinstance(one, ApiCall):
                key = api_key(one.customer_id, one.host)
                self.driver.pipe(topics.API_CALLS, key, codec.API_CALL.encode(one), at_ms=now_ms)

    def ask(self, method: str, path: str, document: Any = None, headers: Any = None) -> tuple[int, Any]:
        assert (method, document, headers) == ("GET", None, None)
        assert self.driver is not None
        assert self.part is not None
        for lookup in APPLICATIONS[self.part.application](self.part.environ).lookups:
            found = re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", lookup.path), path)
            if found is not None:
                answer = self.driver.look(lookup, lookup.candidates_of(found.groupdict())[0].subject)
                return (404, None) if answer is None else (200, json.loads(answer))
        return 404, None

    def rows(self, table: str, columns: str = "*", where: str = "true") -> list[dict[str, Any]]:
        assert self.driver is not None
        (table_topic,) = (one for one in row_topics.ALL if one.name == table)
        newest: dict[Any, dict[str, Any]] = {}
        for number, output in enumerate(self.driver.outputs(table_topic.topic)):
            row = msgspec.json.decode(output.value)
            newest[number if table_topic.key == row_topics.PLACE else tuple(row[name] for name in table_topic.key)] = (
                row
            )
        if not newest:
            return []
        t = pa.Table.from_pylist(list(newest.values()))
        with duckdb.connect() as connection:
            connection.register("t", t)
            found = connection.execute(f"SELECT {columns} FROM t WHERE {where}")
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


@dataclasses.dataclass(frozen=True)
class UsersInMemory(Running):
    """The same with the table of users, which has an API of its own."""

    table: Table = dataclasses.field(default_factory=lambda: Table("calm"))
    loses: Callable[[int], bool] = lambda _: False
    paths: list[str] = dataclasses.field(default_factory=list)

    def ask(self, method: str, path: str, document: Any = None, headers: Any = None) -> tuple[int, Any]:
        self.paths.append(path)
        if self.loses(len(self.paths)):
            return 201, {"id": "0" * 32}
        return self.table.call(method, unquote(path), document, **(headers or {})).answer

    def rows(self, table: str, columns: str = "*", where: str = "true") -> list[dict[str, Any]]:
        assert table == "users"
        return [{"id": key, "deleted": row is None} for key, row in self.table.published().items()]


def running(part: Part, printed: list[str], **fields: Any) -> InMemory:
    driver = Driver(APPLICATIONS[part.application](part.environ))

    def until(condition: Callable[[], bool]) -> bool:
        driver.advance_to(driver.clock_ms + STEP_MS)
        return condition()

    return InMemory(**NOWHERE, until=until, say=printed.append, part=part, driver=driver, **fields)


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.application)
def test_what_comes_out_is_what_was_sent(part: Part) -> None:
    printed: list[str] = []
    lines = part.play(running(part, printed))
    assert [line for line in lines if not line.ok] == []
    assert all(line.name.startswith(f"{part.application}: ") for line in lines)
    assert printed


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.application)
def test_what_is_lost_differs(part: Part) -> None:
    lines = part.play(running(part, [], loses=lambda number: number == 2))
    assert [line for line in lines if line.ok is False] != []


def test_users_come_out_as_they_were_written_and_one_that_is_lost_differs() -> None:
    (part,) = (part for part in catalogue.ALL if part.application == "users")
    given: dict[str, Any] = {"until": lambda condition: condition(), "say": lambda _: None}
    given |= NOWHERE
    assert [line for line in part.play(UsersInMemory(**given)) if not line.ok] == []
    lossy = UsersInMemory(**given, loses=lambda number: number == 3)
    assert [line for line in part.play(lossy) if line.ok is False] != []


def test_parts_are_chosen_by_name() -> None:
    assert catalogue.named("all") == catalogue.ALL
    assert catalogue.named("") == ()
    assert [part.application for part in catalogue.named("api_schemas,traces")] == ["traces", "api_schemas"]
    with pytest.raises(
        catalogue.NoSuchPart, match=r"nothing: the applications are all, or some of traces, api_schemas"
    ):
        catalogue.named("traces,nothing")


@dataclasses.dataclass(frozen=True)
class Answered(Running):
    """A collector that gives these answers."""

    statuses: list[int] = dataclasses.field(default_factory=list)

    def _ask(self, url: str, method: str, path: str, body: bytes | None, headers: Any) -> tuple[int, bytes]:
        return self.statuses.pop(0), b"why"


def answered(*statuses: int) -> Answered:
    unused: Any = None
    return Answered(*[unused] * 9, again_seconds=0.0, statuses=list(statuses))


def test_what_a_busy_collector_did_not_store_is_sent_again() -> None:
    busy = answered(429, 503, 202)
    busy.post("/v1/api-calls", b"{}")
    assert busy.statuses == []

    refusing = answered(429, 400, 202)
    with pytest.raises(Refused, match="400 b'why'"):
        refusing.post("/v1/api-calls", b"{}")
    with pytest.raises(Refused, match="503"):
        answered(*[503] * 100).post("/v1/api-calls", b"{}")
