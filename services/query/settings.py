"""The settings of the service `query`, from the environment: `QUERY_POSTGRES_DSN`, `QUERY_WAREHOUSE_DIR` and so on."""

from pathlib import Path
from typing import ClassVar

import pydantic

from services.accounts.settings import AccountsSettings
from services.query.core import limits


class QuerySettings(AccountsSettings):
    """Where views are, and what a question may take."""

    PREFIX: ClassVar[str] = "QUERY_"

    host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of the API; 0.0.0.0 in a container"
    )
    port: int = pydantic.Field(default=8093, ge=0, le=65535, description="port of the API")
    admin_host: str = pydantic.Field(
        default="127.0.0.1", min_length=1, description="address of health and metrics; 0.0.0.0 in a container"
    )
    admin_port: int = pydantic.Field(default=9107, ge=0, le=65535, description="port of health and metrics")

    postgres_connections_max: int = pydantic.Field(
        default=4, ge=1, le=100, description="connections to Postgres at a time"
    )
    warehouse_dir: Path = pydantic.Field(
        description="FINALIZER_WAREHOUSE_DIR: the folder of the Delta tables, on this machine or a shared one"
    )
    lookup_url: str = pydantic.Field(
        default="",
        pattern=r"(https?://[^\s@]+)?",
        description="where lookups of any processor slot answer; without it and its token open views are not found",
    )
    lookup_token: pydantic.SecretStr | None = pydantic.Field(
        default=None,
        min_length=16,
        description="token of this service at the lookups, with an entry in PROCESSOR_LOOKUP_CREDENTIALS",
    )
    lookup_ca_file: str = pydantic.Field(
        default="",
        description="PEM file of the authorities that certificates of https lookups are checked with; empty: the system's",
    )

    threads: int = pydantic.Field(default=2, ge=1, le=256, description="threads of DuckDB, for all questions together")
    memory_bytes_max: int = pydantic.Field(
        default=1 << 30,
        ge=1 << 27,
        le=1 << 40,
        description="memory of DuckDB, for all questions together; a question beyond it is refused",
    )
    columns_bytes_max: int = pydantic.Field(
        default=512 << 20,
        ge=0,
        le=1 << 40,
        description="bytes of the warehouse's columns that are kept in memory beside DuckDB's, those used last; 0: none",
    )
    questions_max: int = pydantic.Field(
        default=4,
        ge=1,
        le=256,
        description="questions that DuckDB answers at a time: an organisation has all but one of them, a caller all but two",
    )
    caller_questions_max: int = pydantic.Field(
        default=16,
        ge=1,
        le=10_000,
        description="questions of one caller that are answered or wait; others are refused (429)",
    )
    caller_requests_per_second: float = pydantic.Field(
        default=50.0,
        gt=0,
        le=100_000,
        description="requests of one caller, and ten times as many of an organisation; four seconds' requests may come at once,"
        " others are refused (429)",
    )
    seconds_max: float = pydantic.Field(
        default=10.0, gt=0, le=600, description="seconds for one question, its wait included"
    )
    rows_max: int = pydantic.Field(
        default=500_000_000,
        ge=1,
        le=10**12,
        description="rows in the files that one question reads; larger questions are refused",
    )
    hot_rows_max: int = pydantic.Field(
        default=200_000,
        ge=0,
        le=10_000_000,
        description="hot rows that one question reads; if there are more, it is answered from the warehouse alone",
    )
    days_max: int = pydantic.Field(default=limits.DAYS_MAX, ge=1, le=4_000, description="days of one question's range")
    answers_bytes_max: int = pydantic.Field(
        default=64 << 20,
        ge=0,
        le=1 << 40,
        description="bytes of answers that are kept in memory beside DuckDB's, those used last; 0: none",
    )
    exports_dir: Path | None = pydantic.Field(
        default=None, description="folder of exports, which processes may share; without it there are none"
    )
    export_rows_max: int = pydantic.Field(default=1_000_000, ge=1, le=10**9, description="rows of one export")
    export_seconds_max: float = pydantic.Field(default=600.0, gt=0, le=86_400, description="seconds for one export")
    exports_bytes_max: int = pydantic.Field(
        default=10 << 30,
        ge=1,
        le=1 << 50,
        description="bytes of all exports together; one organisation begins no further one when it has as many as are free",
    )
    exports_hours: int = pydantic.Field(default=24, ge=1, le=24 * 365, description="hours for which an export is kept")
    exports_under_way_max: int = pydantic.Field(
        default=3,
        ge=1,
        le=1_000,
        description="exports of one organisation, queued or running; others are refused (429)",
    )
    drain_seconds_max: float = pydantic.Field(
        default=10.0, gt=0, le=600, description="seconds to finish requests after SIGTERM"
    )
