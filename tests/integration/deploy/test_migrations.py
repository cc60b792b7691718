"""Migrations of a service's part of a database: once, all or nothing, one process at a time, and after the earlier runner's."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from deploy.local.postgres import Postgres
from services.collector.customers import table
from services.finalizer.serving.migrate import MIGRATIONS_DIR, migrate
from services.rim.database import migrations
from services.rim.database.migrations import DatabaseNewer

pytestmark = pytest.mark.integration


@pytest.fixture
def dsn(postgres: Postgres) -> str:
    return postgres.create_database(f"migrations_{uuid4().hex}")


def revision(folder: Path, number: int, statements: str) -> None:
    """Writes a revision and its SQL."""
    before = repr(f"{number - 1:04}") if number > 1 else None
    lines = [
        "from services.rim.database.migrations import run_sql",
        f"revision = '{number:04}'",
        f"down_revision = {before}",
    ]
    (folder / f"r{number:04}.py").write_text("\n".join([*lines, "upgrade = run_sql(__file__)", ""]))
    (folder / f"r{number:04}.sql").write_text(statements)


def query(dsn: str, text: str) -> list[tuple[object, ...]]:
    with psycopg.connect(dsn) as connection:
        return connection.execute(text).fetchall()


def test_each_revision_is_applied_once_and_services_do_not_see_each_others(dsn: str, tmp_path: Path) -> None:
    revision(tmp_path, 1, "CREATE TABLE a (n int, t text)")
    assert migrations.migrate(dsn, "one", tmp_path) == ["0001"]
    # Several statements, and what looks like parameters of one driver or the other.
    revision(tmp_path, 2, "INSERT INTO a VALUES (1, '%s'); INSERT INTO a SELECT '2'::int, '100 % :n'")
    assert migrations.migrate(dsn, "one", tmp_path) == ["0002"]
    assert migrations.migrate(dsn, "one", tmp_path) == []
    assert query(dsn, "SELECT n, t FROM a ORDER BY n") == [(1, "%s"), (2, "100 % :n")]

    other = tmp_path / "other"
    other.mkdir()
    revision(other, 1, "CREATE TABLE b (n int)")
    assert migrations.migrate(dsn, "other", other) == ["0001"]


def test_a_revision_that_fails_leaves_nothing_of_the_run(dsn: str, tmp_path: Path) -> None:
    revision(tmp_path, 1, "CREATE TABLE a (n int)")
    revision(tmp_path, 2, "CREATE TABLE b (n int); INSERT INTO nowhere VALUES (1)")
    with pytest.raises(psycopg.errors.UndefinedTable):
        migrations.migrate(dsn, "one", tmp_path)
    assert query(dsn, "SELECT to_regclass('a'), to_regclass('b'), to_regclass('one_revision')") == [(None, None, None)]


def test_of_processes_that_start_at_once_one_migrates(dsn: str, tmp_path: Path) -> None:
    revision(tmp_path, 1, "SELECT pg_sleep(0.3); CREATE TABLE a (n int)")
    with ThreadPoolExecutor(4) as threads:
        applied = list(threads.map(lambda _: migrations.migrate(dsn, "one", tmp_path), range(4)))
    assert sorted(applied) == [[], [], [], ["0001"]]


def test_a_database_of_a_newer_version_is_refused(dsn: str, tmp_path: Path) -> None:
    revision(tmp_path, 1, "CREATE TABLE a (n int)")
    migrations.migrate(dsn, "one", tmp_path)
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE one_revision SET version_num = '0007'")
    with pytest.raises(DatabaseNewer, match="at revision 0007 of the one, newer than this version"):
        migrations.migrate(dsn, "one", tmp_path)


def test_databases_of_the_earlier_runner_go_on_where_it_left_them(dsn: str) -> None:
    former = {"finalizer": (MIGRATIONS_DIR, 3), "collector": (table.MIGRATIONS_DIR, 1)}
    with psycopg.connect(dsn, autocommit=True) as connection:
        for service, (folder, count) in former.items():
            connection.execute(
                f"CREATE TABLE public.{service}_migrations (name text PRIMARY KEY, sha256 text NOT NULL)"
            )
            for path in sorted(folder.glob("*.sql"))[:count]:
                connection.execute(path.read_text())
                # It named its files without the letter that makes them modules.
                connection.execute(f"INSERT INTO {service}_migrations VALUES (%s, '')", (path.name[1:],))

    assert migrate(dsn) == ["0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0012"]
    assert migrate(dsn) == []
    assert migrations.migrate(dsn, "collector", table.MIGRATIONS_DIR) == ["0002", "0003", "0004"]
    revisions = (
        "SELECT * FROM (SELECT version_num FROM finalizer_revision UNION SELECT version_num FROM collector_revision)"
    )
    assert sorted(query(dsn, revisions)) == [("0004",), ("0012",)]
