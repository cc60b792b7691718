"""An S3 server on this machine, in a process of its own: moto, which keeps objects in memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from deploy.local.paths import S3_SERVER
from deploy.local.ports import free_port
from deploy.local.process import Child

BUCKET: Final = "lake"
_REGION: Final = "us-east-1"
_START_SECONDS_MAX: Final = 120.0


@dataclass(frozen=True)
class ObjectServer:
    """Where it is, and how it is asked."""

    url: str

    @property
    def environ(self) -> dict[str, str]:
        """The credentials, as the SDKs of AWS read them."""
        return {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": _REGION}

    @property
    def storage_options(self) -> dict[str, str]:
        """What delta-rs is given to read `s3://…` from here."""
        return {**self.environ, "AWS_ENDPOINT_URL": self.url, "AWS_ALLOW_HTTP": "true"}

    def write_spark_defaults(self, folder: Path, lines: str) -> None:
        """A `SPARK_CONF_DIR` whose `s3a://` is this server; `lines` come before."""
        folder.mkdir()
        here = {"endpoint": self.url, "endpoint.region": _REGION, "path.style.access": "true"}
        text = "".join(f"spark.hadoop.fs.s3a.{name} {value}\n" for name, value in here.items())
        (folder / "spark-defaults.conf").write_text(lines + text)


@contextmanager
def object_server(folder: Path) -> Iterator[ObjectServer]:
    """A server at work, with an empty bucket; its log is in `folder`."""
    port = free_port()
    server = ObjectServer(f"http://127.0.0.1:{port}")
    log = folder / "s3.log"
    child = Child("s3", [str(S3_SERVER), "-H", "127.0.0.1", "-p", str(port)], log_file=log)
    child.start()
    try:
        child.wait_until(lambda: log.exists() and "Running on" in log.read_text(), _START_SECONDS_MAX, "starts")
        with urlopen(Request(f"{server.url}/{BUCKET}", method="PUT"), timeout=30) as answer:
            assert answer.status == 200
        yield server
    finally:
        child.kill()
