"""The customers of simulated players, in the customers' table: keys of others are made on the page."""

from typing import Final

import psycopg

from deploy.demo.viewers import rrweb
from loadtest.story import CUSTOMERS
from services.collector.customers.table import MIGRATIONS_DIR
from services.rim.database.migrations import migrate
from shared.schemas.span import DEFAULT_CUSTOMER

#: Their ids are their keys, as players have them. Spans and API calls of the demo come without a key.
LISTED: Final = (*CUSTOMERS, rrweb.CUSTOMER, DEFAULT_CUSTOMER)
_LIST: Final = "INSERT INTO collector.customers (customer_id) SELECT unnest(%s::text[]) ON CONFLICT DO NOTHING"


def make_table(dsn: str) -> None:
    """Makes the table as `deploy.customers_table` does, and lists them."""
    migrate(dsn, "collector", MIGRATIONS_DIR)
    list_players(dsn)


def list_players(dsn: str) -> None:
    """Lists them in a table that is there. Raises `psycopg.Error`."""
    with psycopg.connect(dsn, connect_timeout=30) as connection:
        connection.execute(_LIST, (list(LISTED),))
