"""What a customer's deletion, and a viewer's, take from schema `alerts`, on a real Postgres."""

import threading
from uuid import uuid4

import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.accounts.store import schema as accounts_schema
from services.alerts.store import forgetting
from tests.integration.deletions.alert_rows import FOUND, NAMES, WITHDRAWN, add_alerts, alerts_holding
from tests.integration.parts.slots import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    made = postgres.create_database(f"forgetting_{uuid4().hex}")
    accounts_schema.migrate(made)
    add_alerts(made, "acme", "viewer b")
    add_alerts(made, "acme_2", "viewer b")
    return made


def test_rules_go_first_then_incidents_and_nobody_elses(dsn: str) -> None:
    others = alerts_holding(dsn, "acme_2")
    told = []
    with psycopg.connect(dsn) as connection:
        assert forgetting.withdraw_rules(connection, "acme", lambda: told.append("acme")) == WITHDRAWN
    assert told == ["acme"]
    assert alerts_holding(dsn, "acme(?!_2)").keys() == {"incidents", "changes", "comments", "deliveries"}
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT FROM alerts.deliveries WHERE state = 'waiting'").rowcount == 1
        assert forgetting.delete_incidents(connection, "acme") == FOUND
    assert alerts_holding(dsn, "acme(?!_2)") == {}
    assert alerts_holding(dsn, "acme_2") == others


def test_a_rule_that_is_made_meanwhile_waits_until_the_processor_was_told(dsn: str) -> None:
    bump = """
        INSERT INTO alerts.environments (customer_id, version) VALUES ('acme', 1)
        ON CONFLICT (customer_id) DO UPDATE SET version = alerts.environments.version + 1
    """
    order = []

    def make() -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute(bump)
            order.append("made")

    other = threading.Thread(target=make)

    def publish() -> None:
        other.start()
        waits = "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        wait_until(lambda: _count(dsn, waits) == 1, "the other waits", 30)
        order.append("told")

    with psycopg.connect(dsn) as connection:
        forgetting.withdraw_rules(connection, "acme", publish)
    other.join(30)
    assert order == ["told", "made"]
    # A new customer's: published as its first version.
    assert alerts_holding(dsn, r"acme,1,0") == {"environments": 1}


def test_what_people_wrote_of_a_viewer_goes_and_the_rest_stays(dsn: str) -> None:
    with psycopg.connect(dsn) as connection:
        of_names = {f"names_of_{name}": count for name, count in NAMES.items()}
        assert forgetting.forget_viewer(connection, "acme", "viewer b") == {"comments": 1, **of_names}
    assert alerts_holding(dsn, "acme(?!_2).*viewer b|viewer b.*acme(?!_2)") == {}
    assert alerts_holding(dsn, r"Of \(deleted\)") == NAMES
    assert alerts_holding(dsn, "Of viewer b") == NAMES
    assert alerts_holding(dsn, "again|Somebody")["comments"] == 3
    # Published once more, under the new name.
    assert alerts_holding(dsn, r"acme,4,3") == {"environments": 1}


def test_an_installation_without_alerts_has_nothing_to_delete(postgres: Postgres) -> None:
    dsn, told = postgres.create_database(f"forgetting_{uuid4().hex}"), []
    with psycopg.connect(dsn) as connection:
        assert forgetting.withdraw_rules(connection, "acme", lambda: told.append("acme")) == {}
        assert forgetting.delete_incidents(connection, "acme") == {}
        assert forgetting.forget_viewer(connection, "acme", "a viewer") == {}
    # The processor may have learned of it all the same.
    assert told == ["acme"]


def _count(dsn: str, statement: str) -> int:
    with psycopg.connect(dsn) as connection:
        return connection.execute(statement).rowcount  # type: ignore[call-overload]
