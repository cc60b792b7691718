"""What the players of a demo know of their views, as views that a figure can be counted of."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from loadtest.incident import Incident
from shared.schemas.view import View
from tests.integration.page.parts.looking import Seen, number
from tests.integration.parts.browsing import SOON_MS
from tests.unit.query.parts.recounting import FIGURES

#: All views of the demo are within it.
RANGE: Final = "7d"
#: What a table calls the views without a value.
UNKNOWN: Final = "(unknown)"
#: A figure is rounded to three digits where it is shown.
ROUNDED: Final = 0.006
#: What a row must have and players do not tell: no figure here rests on it.
_UNTOLD: Final[dict[str, Any]] = {"schema_version": 1, "revision": 1, "day": 0}


@dataclass(frozen=True)
class Told:
    """What the players know of their views.

    Times are theirs, by the right clock: a view begins when it began, and ends with the last beacon that was delivered.
    """

    views: list[View]
    incident: Incident
    #: When the run began, ms since 1970.
    began_ms: int
    #: When each player left, by the id of the view.
    left_ms: dict[str, int]

    def of(self, **fields: Any) -> list[View]:
        """The views with these values."""
        return [one for one in self.views if all(getattr(one, name) == value for name, value in fields.items())]

    def by(self, dimension: str, **fields: Any) -> Callable[[str], list[View]]:
        """The views of a row of a table, by its head."""
        return lambda head: self.of(**{dimension: value_of(head)}, **fields)


def value_of(head: str) -> str | None:
    """The value that the head of a row names."""
    return None if head == UNKNOWN else head


def told(truth: Path, incident: Incident) -> Told:
    """What the players of a demo have written into their file."""
    account = json.loads(truth.read_text())
    rows = account["views"]
    assert rows
    left_ms = {row["view_id"]: row["left_ms"] for row in rows}
    return Told([_view(row) for row in rows], incident, account["began_ms"], left_ms)


def _view(row: dict[str, Any]) -> View:
    known = {name: value for name, value in row.items() if name in View.__struct_fields__}
    begins = dict.fromkeys(("view_start_ms", "first_append_ms"), row["started_ms"])
    ends = dict.fromkeys(("view_end_ms", "last_append_ms"), row["acked_until_ms"])
    return View(**_UNTOLD, **begins, **ends, **known)


def is_near(text: str, metric: str, views: list[View], error: float = 0) -> None:
    """Holds a figure of the page against that of the views."""
    truth = FIGURES[metric](views)
    assert number(text) == pytest.approx(truth, rel=ROUNDED + error, abs=6e-5), (metric, text, truth)


def narrow(seen: Seen, dimension: str, value: str) -> None:
    """Narrows Explore to a value, by a click in its table."""
    seen.page.get_by_role("button", name="Table").click(timeout=SOON_MS)
    seen.page.locator("#by").select_option(dimension, timeout=SOON_MS)
    seen.page.locator("#groups tbody").get_by_role("link", name=value, exact=True).click(timeout=SOON_MS)
