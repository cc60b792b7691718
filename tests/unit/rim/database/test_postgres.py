"""A password reaches no message: neither that of settings that are refused, nor the pool's log."""

import logging

import psycopg
import pydantic
import pytest

from services.dashboard.settings import DashboardSettings
from services.finalizer.settings import FinalizerSettings
from services.rim.database.postgres import certificate_files, log_pool_errors_by_kind
from shared.settings import Settings, SettingsError

FOLDERS = {f"FINALIZER_{name}_DIR": "x" for name in ("WAREHOUSE", "CHECKPOINT", "JARS")}


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://playhead:pa%zz-S3cret@127.0.0.1/x",
        "postgresql://playhead:pa@S3cret@127.0.0.1/x",
        "postgresql://playhead:S3cret/with@127.0.0.1:1/x",
        "host=h password='S3 S3cret",
        "password=pa S3cret host=127.0.0.1",
    ],
)
@pytest.mark.parametrize(
    ("service", "others"), [(FinalizerSettings, FOLDERS), (DashboardSettings, {})], ids=("finalizer", "dashboard")
)
def test_a_connection_string_that_libpq_would_misread_is_refused_unquoted(
    service: type[Settings], others: dict[str, str], dsn: str
) -> None:
    name = service.variable("postgres_dsn")
    with pytest.raises(SettingsError, match=f"{name}=.hidden.: .*percent-encoded") as refused:
        service.load({name: dsn, **others})
    assert "S3cret" not in f"{refused.value!r} {refused.value.__cause__!r}"


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://playhead:pa%25zz%40@127.0.0.1:5432/x",
        "postgresql://playhead@[::1]:5432,db-2.local:5433/x?sslmode=require",
        "postgresql://playhead@%2Fvar%2Frun%2Fa%20folder/x",
        "host=/var/run user=playhead dbname=x",
        "host=@abstract",
        "",
    ],
)
def test_a_connection_string_that_libpq_reads_is_taken_as_it_is(dsn: str) -> None:
    settings = DashboardSettings.load({"DASHBOARD_POSTGRES_DSN": dsn})
    assert settings.postgres_dsn == pydantic.SecretStr(dsn)


def test_the_pool_logs_errors_by_their_kind(caplog: pytest.LogCaptureFixture) -> None:
    log_pool_errors_by_kind()
    error = psycopg.OperationalError('could not translate host name "S3cret"')
    logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "pool-1", error)
    assert caplog.messages == ["error connecting in 'pool-1': OperationalError"]


@pytest.mark.parametrize(
    ("dsn", "files"),
    [
        (None, []),
        ("postgresql://h/x?sslmode=verify-full&sslrootcert=system", []),
        (
            "postgresql://h/x?sslrootcert=/etc/ca.pem&sslcert=/etc/me.pem&sslkey=/etc/me.key",
            ["/etc/ca.pem", "/etc/me.pem"],
        ),
    ],
)
def test_a_connection_string_names_the_certificates_it_rests_on(dsn: str | None, files: list[str]) -> None:
    secret = None if dsn is None else pydantic.SecretStr(dsn)
    assert [str(file) for file in certificate_files(secret)] == files
