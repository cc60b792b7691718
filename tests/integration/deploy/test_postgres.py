"""The local Postgres: answers, keeps its data over a restart, and is really gone when stopped."""

from pathlib import Path

import psycopg
import pytest

from deploy.local.postgres import Postgres

pytestmark = pytest.mark.integration


def test_rows_outlive_a_restart_and_a_kill_and_nothing_is_left_running(tmp_path: Path) -> None:
    server = Postgres(tmp_path / "a folder with spaces")
    try:
        server.start()
        with psycopg.connect(server.dsn) as connection:
            connection.execute("CREATE TABLE kept (n int)")
            connection.execute("INSERT INTO kept VALUES (1)")
        server.stop()
        server.start()
        server.kill()
        server.start()
        still_open = psycopg.connect(server.dsn)
        assert still_open.execute("SELECT n FROM kept").fetchall() == [(1,)]
        server.stop()
        still_open.close()
        assert server.child is not None
        assert server.child.exit_code == 0
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.dsn, connect_timeout=2)
    finally:
        server.remove()


def test_a_test_can_have_a_database_of_its_own(postgres: Postgres) -> None:
    dsn = postgres.create_database("of_its_own")

    assert postgres.create_database("of_its_own") == dsn
    with psycopg.connect(dsn) as connection:
        assert connection.execute("SELECT current_database()").fetchone() == ("of_its_own",)
