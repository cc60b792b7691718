"""Pages of incidents and of messages: each row is on one page, also of many that have the same time."""

from typing import Any
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import msgspec
import psycopg
import pytest

from tests.integration.alerts.alerting import T0, page
from tests.integration.collector.collecting import SECONDS_MAX
from tests.unit.alerts.events import event

pytestmark = pytest.mark.integration

#: So many of each time.
EQUAL = 5
TIMES = 3
#: Half of them are over.
_INCIDENTS = """
    INSERT INTO alerts.incidents (id, customer_id, rule_id, revision, opened_at, closed_at, event)
    SELECT 'i' || number, 'acme', 'rule', 1, to_timestamp(%(seconds)s + number %% %(times)s),
           CASE WHEN number %% 2 = 0 THEN to_timestamp(%(seconds)s) END, %(event)s
    FROM generate_series(1, %(rows)s) AS number
"""
_RECEIVER = """
    INSERT INTO alerts.receivers (organisation_id, name, kind, target, changed_by)
    SELECT id, 'ours', 'email', '{}', 'ada' FROM accounts.organisations ORDER BY created_at DESC LIMIT 1 RETURNING id
"""
#: Times have parts of a millisecond.
_DELIVERIES = """
    INSERT INTO alerts.deliveries (id, receiver_id, made_at, state)
    SELECT 'm' || number, %(receiver)s, to_timestamp(%(seconds)s) + (number %% %(times)s) * interval '1 microsecond',
           CASE WHEN number %% 2 = 0 THEN 'dead' ELSE 'delivered' END
    FROM generate_series(1, %(rows)s) AS number
"""


def fill(dsn: str) -> None:
    """Incidents, and messages to the organisation that was made last."""
    given: dict[str, Any] = {"rows": EQUAL * TIMES, "times": TIMES, "seconds": T0 / 1_000}
    with psycopg.connect(dsn, autocommit=True) as connection:
        receiver = connection.execute(_RECEIVER).fetchone()
        assert receiver is not None
        connection.execute(_DELIVERIES, given | {"receiver": receiver[0]})
        connection.execute(_INCIDENTS, given | {"event": msgspec.json.encode(event()).decode()})


def answer(at: tuple[str, str], path: str, **given: Any) -> dict[str, Any]:
    url, bearer = at
    request = Request(f"{url}/v1/alerts/{path}?{urlencode(given)}", headers={"Authorization": f"Bearer {bearer}"})
    with urlopen(request, timeout=SECONDS_MAX) as found:
        return msgspec.json.decode(found.read(), type=dict[str, Any])


def pages(at: tuple[str, str], path: str, **given: Any) -> list[list[dict[str, Any]]]:
    """Every page of a list, by the cursor of the one before."""
    found, cursor = [], ""
    while cursor is not None:
        one = answer(at, path, **given, cursor=cursor)
        found.append(one[path])
        cursor = one["next"]
    return found


@pytest.mark.parametrize(
    ("path", "time", "given", "rows"),
    [
        ("incidents", "opened_ms", {}, 15),
        ("incidents", "opened_ms", {"state": "open"}, 8),
        ("incidents", "opened_ms", {"before_ms": T0 + 2_000}, 10),
        ("deliveries", "made_ms", {}, 15),
        ("deliveries", "made_ms", {"state": "dead"}, 7),
    ],
)
def test_each_row_is_on_one_page_the_newest_first(
    dsn: str, path: str, time: str, given: dict[str, Any], rows: int
) -> None:
    with page(dsn) as at:
        fill(dsn)
        (whole,) = pages(at, path, **given, limit=100)
        assert len({one["id"] for one in whole}) == len(whole) == rows
        assert [one[time] for one in whole] == sorted((one[time] for one in whole), reverse=True)
        for limit in (1, 4, rows):
            cut = pages(at, path, **given, limit=limit)
            # Rows of one time are cut by every page, and the last page names no other.
            assert [one for part in cut for one in part] == whole
            assert [len(part) for part in cut] == [limit] * (rows // limit) + [rows % limit] * (rows % limit > 0)
