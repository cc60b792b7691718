"""The services of the demo: which processes, with which settings, and which of those differ from the defaults."""

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from deploy.demo.applications.part import Part
from deploy.demo.shortened import FINISH_MS, triggers
from deploy.local import short_spark
from deploy.local.paths import RRWEB, SPARK_JARS
from deploy.local.ports import free_port, preferred_or_free
from deploy.local.supervisor import Service
from services.processor.applications.video_views.settings import VideoViewsSettings
from services.processor.settings import ApplicationName
from services.rim.http.credentials import entry

COLLECTOR_PORT: Final = 8080
DASHBOARD_PORT: Final = 8090
QUERY_PORT: Final = 8093
COLLECTORS: Final = 2
PROCESSORS: Final = 2
_HOST: Final = "127.0.0.1"
#: Importing and starting Spark and Delta and making the tables takes a minute on two busy cores, and several where others work too.
_FINALIZER_READY_SECONDS_MAX: Final = 300.0
_FINALIZER_STOP_SECONDS_MAX: Final = 90.0


class DemoServices:
    """The processes of one demo; ports are chosen when it is made."""

    def __init__(
        self, folder: Path, *, bootstrap: str, postgres_dsn: str, parts: Sequence[Part] = (), api_token: str = ""
    ) -> None:
        self._folder = folder
        self._common = {
            "PLAYHEAD_KAFKA_BOOTSTRAP": bootstrap,
            "PLAYHEAD_TOPICS_PROFILE": "laptop",
            "PLAYHEAD_LOG_FORMAT": "json",
        }
        self.postgres_dsn = postgres_dsn
        self.collector_port = preferred_or_free(COLLECTOR_PORT)
        self.dashboard_port = preferred_or_free(DASHBOARD_PORT)
        self.query_port = preferred_or_free(QUERY_PORT)
        self._lookup_ports = [free_port() for _ in range(PROCESSORS)]
        self._parts = parts
        self._api_token = api_token
        self._part_ports = {part.application: free_port() for part in parts}
        self.lookup_token = secrets.token_urlsafe(24)
        #: Of each service that asks slots, and of slots among themselves.
        self._service_tokens = {name: secrets.token_urlsafe(24) for name in ("dashboard", "query", "slots")}
        self.collector_admin_ports = [free_port() for _ in range(COLLECTORS)]
        self._processor_admin_ports = [free_port() for _ in range(PROCESSORS)]
        self._finalizer_admin_port = free_port()

    @property
    def collector_url(self) -> str:
        """Where players post to. `localhost`, since mux-embed speaks plain HTTP to that name alone."""
        return f"http://localhost:{self.collector_port}"

    @property
    def page_url(self) -> str:
        """The dashboard's page."""
        return f"http://localhost:{self.dashboard_port}/"

    def addresses(self) -> dict[str, str]:
        """What the documents ask for, by the name of the shell variable."""
        of_parts = {part.application.upper(): self.lookup_url(part.application) for part in self._parts}
        return {
            "COLLECTOR": self.collector_url,
            "PAGE": self.page_url,
            "LOOKUPS": f"http://{_HOST}:{self._lookup_ports[0]}",
            "TOKEN": self.lookup_token,
            "API": self.page_url.rstrip("/"),
            "API_TOKEN": self._api_token,
            **of_parts,
            "FINALIZER_WAREHOUSE_DIR": str(self.warehouse),
            "POSTGRES": self.postgres_dsn,
            "KAFKA": self._common["PLAYHEAD_KAFKA_BOOTSTRAP"],
            "COLLECTOR_ADMIN": f"http://{_HOST}:{self.collector_admin_ports[0]}",
            "PROCESSOR_ADMIN": f"http://{_HOST}:{self._processor_admin_ports[0]}",
            "FINALIZER_ADMIN": f"http://{_HOST}:{self._finalizer_admin_port}",
            "LOGS": str(self._folder / "logs"),
        }

    @property
    def warehouse(self) -> Path:
        """The folder of the Delta tables."""
        return self._folder / "warehouse"

    @property
    def truth(self) -> Path:
        """The players' account."""
        return self._folder / "truth.json"

    @property
    def places_file(self) -> Path:
        """The database of the players' networks (`deploy.demo.viewers.places`)."""
        return self._folder / "places.mmdb"

    @property
    def truths(self) -> Sequence[Path]:
        """That account alone."""
        return [self.truth]

    def fetched_warehouse(self) -> Path:
        """The folder of the Delta tables: it lies here."""
        return self.warehouse

    def collectors(self) -> list[Service]:
        """All on one port: the kernel spreads connections over them."""
        return [
            self._service(
                f"collector-{number}",
                ("-m", "services.collector"),
                admin_port,
                {
                    "COLLECTOR_HOST": _HOST,
                    "COLLECTOR_PORT": str(self.collector_port),
                    "COLLECTOR_ADMIN_HOST": _HOST,
                    "COLLECTOR_ADMIN_PORT": str(admin_port),
                    # All simulated players of a load test have one address.
                    "COLLECTOR_ADDRESS_REQUESTS_PER_SECOND": "1000000",
                    # They say whose address they have, as a balancer would.
                    "COLLECTOR_TRUSTED_PROXIES": f"{_HOST}/32",
                    "COLLECTOR_PLACES_FILES": str(self.places_file),
                    "COLLECTOR_ID": f"collector-{number}",
                    "COLLECTOR_CUSTOMERS_DSN": self.postgres_dsn,
                },
            )
            for number, admin_port in enumerate(self.collector_admin_ports)
        ]

    def processors(self) -> list[Service]:
        """Two slots: each has half of the partitions."""
        return [self._processor(number, port) for number, port in enumerate(self._processor_admin_ports)]

    def slots(self) -> list[Service]:
        """One of each application that the demo has a part of."""
        return [
            self._slot(
                part.application,
                part.application,
                slot="demo/0",
                lookup_port=self._part_ports[part.application],
                admin_port=free_port(),
                env=part.environ,
            )
            for part in self._parts
        ]

    def lookup_url(self, application: ApplicationName) -> str:
        """Where the slot of an application answers lookups."""
        return f"http://{_HOST}:{self._part_ports[application]}"

    def finalizer(self) -> Service:
        """The warehouse's writer."""
        return self._service(
            "finalizer",
            ("-m", "services.finalizer", "stream"),
            self._finalizer_admin_port,
            {
                "FINALIZER_WAREHOUSE_DIR": str(self.warehouse),
                "FINALIZER_CHECKPOINT_DIR": str(self._folder / "checkpoint"),
                "FINALIZER_POSTGRES_DSN": self.postgres_dsn,
                "FINALIZER_JARS_DIR": str(SPARK_JARS),
                **triggers(),
                "FINALIZER_DRIVER_MEMORY": "1g",
                **short_spark.environment(),
                "FINALIZER_OBJECTS": str(self._folder / "objects"),
                "FINALIZER_APPLICATIONS": ",".join(part.application for part in self._parts),
                "FINALIZER_ADMIN_HOST": _HOST,
                "FINALIZER_ADMIN_PORT": str(self._finalizer_admin_port),
            },
            ready_seconds=_FINALIZER_READY_SECONDS_MAX,
            stop_seconds=_FINALIZER_STOP_SECONDS_MAX,
        )

    def serving(self) -> Service:
        """Hot rows: what the page shows within a second."""
        admin_port = free_port()
        return self._service(
            "serving",
            ("-m", "services.serving"),
            admin_port,
            {
                "SERVING_POSTGRES_DSN": self.postgres_dsn,
                "SERVING_ADMIN_HOST": _HOST,
                "SERVING_ADMIN_PORT": str(admin_port),
            },
        )

    def query(self) -> Service:
        """The API; it says that there is nothing yet until the finalizer has made its tables."""
        admin_port = free_port()
        return self._service(
            "query",
            ("-m", "services.query"),
            admin_port,
            {
                "QUERY_HOST": _HOST,
                "QUERY_PORT": str(self.query_port),
                "QUERY_ADMIN_HOST": _HOST,
                "QUERY_ADMIN_PORT": str(admin_port),
                "QUERY_POSTGRES_DSN": self.postgres_dsn,
                "QUERY_WAREHOUSE_DIR": str(self.warehouse),
                "QUERY_TRUSTED_PROXIES": f"{_HOST}/32",
                "QUERY_EXPORTS_DIR": str(self._folder / "exports"),
                "QUERY_LOOKUP_URL": f"http://{_HOST}:{self._lookup_ports[0]}",
                "QUERY_LOOKUP_TOKEN": self._service_tokens["query"],
            },
        )

    def _lookup_credentials(self) -> str:
        """Who may ask slots: the page and the API what they show, and who runs the demo everything."""
        tokens = self._service_tokens
        return " ".join(
            (
                entry("dashboard", ["lookups", "objects", "partitions"], tokens["dashboard"]),
                entry("query", ["lookups"], tokens["query"]),
                entry("demo", ["lookups", "objects", "read", "write", "partitions", "operators"], self.lookup_token),
            )
        )

    def alerting(self) -> list[Service]:
        """What judges live numbers, and what notifies of it."""
        admin_port = free_port()
        notifications = self._service(
            "notifications",
            ("-m", "services.notifications"),
            admin_port,
            {
                "NOTIFICATIONS_POSTGRES_DSN": self.postgres_dsn,
                "NOTIFICATIONS_PAGE_URL": self.page_url.rstrip("/"),
                # The receiver is this machine's.
                "NOTIFICATIONS_PRIVATE_RECEIVERS": "true",
                "NOTIFICATIONS_ADMIN_HOST": _HOST,
                "NOTIFICATIONS_ADMIN_PORT": str(admin_port),
            },
        )
        slot = self._slot(
            "alerts", "alerts", slot="demo/0", lookup_port=free_port(), admin_port=free_port(), env={}
        )  # fmt: skip
        return [notifications, slot]

    def dashboard(self) -> Service:
        """The page."""
        admin_port = free_port()
        replay = {}
        if "recordings" in self._part_ports and RRWEB.is_dir():
            replay = {
                "DASHBOARD_RECORDINGS_LOOKUP_URL": self.lookup_url("recordings"),
                "DASHBOARD_RRWEB_DIR": str(RRWEB),
            }
        return self._service(
            "dashboard",
            ("-m", "services.dashboard"),
            admin_port,
            {
                "DASHBOARD_HOST": _HOST,
                "DASHBOARD_PORT": str(self.dashboard_port),
                "DASHBOARD_ADMIN_HOST": _HOST,
                "DASHBOARD_ADMIN_PORT": str(admin_port),
                "DASHBOARD_POSTGRES_DSN": self.postgres_dsn,
                "DASHBOARD_LOOKUP_URL": f"http://{_HOST}:{self._lookup_ports[0]}",
                "DASHBOARD_LOOKUP_TOKEN": self._service_tokens["dashboard"],
                "DASHBOARD_QUERY_URL": f"http://{_HOST}:{self.query_port}",
                **replay,
            },
        )

    def _processor(self, number: int, admin_port: int) -> Service:
        finish = {VideoViewsSettings.variable(field): str(value) for field, value in FINISH_MS.items()}
        name, port = f"processor-{number}", self._lookup_ports[number]
        return self._slot(
            name, "video_views", slot=f"demo/{number}", lookup_port=port, admin_port=admin_port, env=finish
        )

    def _slot(
        self,
        name: str,
        application: ApplicationName,
        *,
        slot: str,
        lookup_port: int,
        admin_port: int,
        env: Mapping[str, str],
    ) -> Service:
        return self._service(
            name,
            ("-m", "services.processor"),
            admin_port,
            {
                **env,
                "PROCESSOR_APPLICATION": application,
                "PROCESSOR_SLOT": slot,
                "PROCESSOR_STATE_DIR": str(self._folder / "state" / name),
                "PROCESSOR_OBJECTS": str(self._folder / "objects"),
                "PROCESSOR_LOOKUP_HOST": _HOST,
                "PROCESSOR_LOOKUP_PORT": str(lookup_port),
                "PROCESSOR_LOOKUP_URL": f"http://{_HOST}:{lookup_port}",
                "PROCESSOR_LOOKUP_TOKEN": self._service_tokens["slots"],
                "PROCESSOR_LOOKUP_CREDENTIALS": self._lookup_credentials(),
                "PROCESSOR_ADMIN_HOST": _HOST,
                "PROCESSOR_ADMIN_PORT": str(admin_port),
            },
        )

    def _service(
        self,
        name: str,
        arguments: tuple[str, ...],
        admin_port: int,
        env: Mapping[str, str],
        *,
        ready_seconds: float = 60.0,
        stop_seconds: float = 45.0,
    ) -> Service:
        return Service(
            name,
            arguments,
            env=self._common | dict(env),
            admin_port=admin_port,
            ready_seconds=ready_seconds,
            stop_seconds=stop_seconds,
        )
