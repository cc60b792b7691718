"""Pages of lists of alerts: each row is on one page, also of many that have the same time; a cursor is of its list."""

from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import msgspec
import psycopg
import pytest

from services.accounts.core.customer_scope import CustomerScope
from tests.integration.alerts.alerting import T0, asked, page
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
#: Of three customers, in an order that is neither that of ids nor that of names.
_RULES = """
    INSERT INTO alerts.rules (customer_id, body, changed_by, changed_at, version)
    SELECT 'c' || number %% %(times)s, %(body)s, 'ada', to_timestamp(%(seconds)s + number %% 2), 1
    FROM generate_series(1, %(rows)s) AS number
"""
_VERSIONS = """
    INSERT INTO alerts.rule_versions (rule_id, version, body, changed_by)
    SELECT %(rule)s, number, %(body)s, 'ada' FROM generate_series(1, %(rows)s) AS number
"""
#: Two of each name but one, of the longest names.
_RECEIVERS = """
    INSERT INTO alerts.receivers (organisation_id, name, kind, target, changed_by)
    SELECT id, repeat('ü', 198) || (number / 2), 'email', '{}', 'ada'
    FROM generate_series(2, %(rows)s) AS number,
         (SELECT id FROM accounts.organisations ORDER BY created_at DESC LIMIT 1) AS organisation
"""
_RULE = {
    "customer": "acme", "name": "High", "metric": "rebuffering", "condition": "threshold", "threshold": 0.05, "receivers": [],
}  # fmt: skip


def fill(dsn: str) -> None:
    """Incidents, and messages to the organisation that was made last, its receivers; rules, one of them with versions."""
    given: dict[str, Any] = {"rows": EQUAL * TIMES, "times": TIMES, "seconds": T0 / 1_000}
    with psycopg.connect(dsn, autocommit=True) as connection:
        receiver = connection.execute(_RECEIVER).fetchone()
        assert receiver is not None
        connection.execute(_DELIVERIES, given | {"receiver": receiver[0]})
        connection.execute(_INCIDENTS, given | {"event": msgspec.json.encode(event()).decode()})
        connection.execute(_RECEIVERS, given)
        body = {"body": msgspec.json.encode(_RULE).decode()}
        connection.execute(_RULES, given | body)
        (rule,) = connection.execute("SELECT id FROM alerts.rules ORDER BY id LIMIT 1").fetchall()
        connection.execute(_VERSIONS, given | body | {"rule": rule[0]})


def first_rule(dsn: str) -> str:
    """The one with versions."""
    return str(asked(dsn, "SELECT id::text FROM alerts.rules ORDER BY id LIMIT 1")[0][0])


def answer(at: tuple[str, str], path: str, **given: Any) -> dict[str, Any]:
    url, bearer = at
    request = Request(f"{url}/v1/alerts/{path}?{urlencode(given)}", headers={"Authorization": f"Bearer {bearer}"})
    with urlopen(request, timeout=SECONDS_MAX) as found:
        return msgspec.json.decode(found.read(), type=dict[str, Any])


def refused(at: tuple[str, str], path: str, **given: Any) -> dict[str, Any]:
    """The problem of a 400."""
    with pytest.raises(HTTPError) as raised:
        answer(at, path, **given)
    assert raised.value.code == 400
    return msgspec.json.decode(raised.value.read(), type=dict[str, Any])


def pages(at: tuple[str, str], path: str, **given: Any) -> list[list[dict[str, Any]]]:
    """Every page of a list, by the cursor of the one before."""
    found, cursor = [], ""
    name = "rules" if path.startswith("rules") else path
    while cursor is not None:
        one = answer(at, path, **given, cursor=cursor)
        found.append(one[name])
        cursor = one["next"]
    return found


def check_pages(at: tuple[str, str], path: str, given: dict[str, Any], rows: int) -> list[dict[str, Any]]:
    """The whole list, after pages of several lengths were the same rows, each once."""
    (whole,) = pages(at, path, **given, limit=100)
    assert len({(one["id"], one.get("version")) for one in whole}) == len(whole) == rows
    for limit in (1, 4, rows):
        cut = pages(at, path, **given, limit=limit)
        # Rows of one time are cut by every page, and the last page names no other.
        assert [one for part in cut for one in part] == whole
        assert [len(part) for part in cut] == [limit] * (rows // limit) + [rows % limit] * (rows % limit > 0)
    return whole


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
        whole = check_pages(at, path, given, rows)
        assert [one[time] for one in whole] == sorted((one[time] for one in whole), reverse=True)


def test_each_rule_version_and_receiver_is_on_one_page(dsn: str) -> None:
    with page(dsn) as at:
        fill(dsn)
        listed = [(one["rule"]["customer"], one["changed_ms"]) for one in check_pages(at, "rules", {}, 15)]
        assert len({changed_ms for _, changed_ms in listed}) == 2
        assert [one["id"] for one in check_pages(at, "rules", {"customer": "c1"}, 5)] == [
            row[0]
            for row in asked(
                dsn, "SELECT id::text FROM alerts.rules WHERE customer_id = 'c1' ORDER BY changed_at, id::text"
            )
        ]
        versions = check_pages(at, f"rules/{first_rule(dsn)}/versions", {}, 15)
        assert [one["version"] for one in versions] == list(range(15, 0, -1))
        names = [one["name"] for one in check_pages(at, "receivers", {}, 15)]
        assert names == sorted(names)
    # Of what one may see, no page has less for what one may not.
    with page(dsn, CustomerScope(all_but=frozenset({"c0"}))) as at:
        assert len(check_pages(at, "rules", {}, 10)) == 10


def test_a_cursor_of_another_list_or_question_is_refused(dsn: str) -> None:
    with page(dsn) as at:
        fill(dsn)
        versions = f"rules/{first_rule(dsn)}/versions"
        lists = ["incidents", "deliveries", "rules", "receivers", versions]
        cursors = {path: answer(at, path, limit=4)["next"] for path in lists}
        for path in lists:
            for other in lists:
                if path == other:
                    # Of another length the next page is the same list's.
                    assert answer(at, path, limit=1, cursor=cursors[path])
                    continue
                problem = refused(at, path, cursor=cursors[other])
                assert problem["errors"] == [
                    {"detail": "`next` of a page of this list, for the same question", "parameter": "cursor"}
                ]
        for path, given in (
            ("incidents", {"state": "open"}),
            ("deliveries", {"state": "dead"}),
            ("rules", {"customer": "c1"}),
        ):
            refused(at, path, cursor=cursors[path], **given)
        for wrong in ("!", "AA", "x" * 5_000, "%00"):
            refused(at, "rules", cursor=wrong)
