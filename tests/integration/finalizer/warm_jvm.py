"""A JVM that finalizer processes use one after the other, as they use that of `spark-submit`.

To start Spark in a JVM of its own takes some 40 CPU seconds: most of it loads and compiles what every start needs. The processes
are those of an installation, and so are their deaths. What such a death leaves in the JVM is ended from here, as the end of its
own JVM would have done.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.serializers import UTF8Deserializer, read_int

from deploy.local.process import wait_until
from services.finalizer.warehouse import session

_START_SECONDS_MAX: Final = 240.0
#: Where pyspark's JVM writes its port and secret.
_WHERE: Final = "_PYSPARK_DRIVER_CONN_INFO_PATH"
_SETTINGS: Final[Mapping[str, str]] = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    **session.WITHOUT_PAGES,
    "spark.python.daemon.module": "tests.integration.finalizer.python_daemon",
    # Those of earlier processes are idle. Above this many a task closes them first, for half a minute each if their broker rests.
    "spark.kafka.consumer.cache.capacity": "100000",
}


class WarmJvm:
    """Starts when it is first taken, and again when it was ended. It is of one process at a time."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None
        self._gateway: JavaGateway | None = None
        self._is_taken = False

    def take(self) -> dict[str, str]:
        """Environment variables of the process that has its Spark here from now on."""
        if self._is_taken:
            raise RuntimeError("another process has its Spark here")
        self._is_taken = True
        port, secret = self._address() if self._gateway is None else self._known(self._gateway)
        return {
            "PYSPARK_GATEWAY_PORT": str(port),
            "PYSPARK_GATEWAY_SECRET": secret,
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }

    def give_back(self) -> None:
        """Ends what the process has left running, which has ended; a JVM that cannot do so is ended itself."""
        self._is_taken = False
        try:
            self._end_spark()
        except (Py4JJavaError, Py4JNetworkError):
            self.end()

    def finish(self, seconds: float) -> int:
        """Lets it end in order, by the end of its standard input; the exit code. Raises `subprocess.TimeoutExpired`."""
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(seconds)

    def log(self) -> str:
        """The end of what it wrote."""
        return (self._folder / "jvm.log").read_text()[-4000:]

    def end(self) -> None:
        """Ends the JVM."""
        if self._process is not None:
            # Leaving it waits for the process, and closes its standard input.
            with self._process as process:
                process.kill()
        if self._gateway is not None:
            with suppress(Py4JError, OSError):
                self._gateway.close()
        self._process = self._gateway = None

    def _end_spark(self) -> None:
        assert self._gateway is not None
        jvm = self._gateway.jvm
        default = jvm.org.apache.spark.sql.SparkSession.getDefaultSession()
        if default.isDefined():
            # Else a stream of the process that died would go on beside that of the next one.
            for query in default.get().streams().active():
                query.stop()
        running = getattr(getattr(jvm.org.apache.spark, "SparkContext$"), "MODULE$").getActive()
        if running.isDefined():
            running.get().stop()
        jvm.org.apache.spark.sql.SparkSession.clearDefaultSession()
        # What the next process would take over: snapshots of tables, and clients of stores with the settings of now.
        jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()
        jvm.org.apache.hadoop.fs.FileSystem.closeAll()

    def _address(self) -> tuple[int, str]:
        where = self._folder / "address"
        where.unlink(missing_ok=True)
        home = Path(pyspark.__file__).parent
        chosen = {**_SETTINGS, "spark.driver.extraJavaOptions": session.jvm_options(self._environment)}
        settings = [one for name, value in chosen.items() for one in ("--conf", f"{name}={value}")]
        with (self._folder / "jvm.log").open("ab") as log:
            # It ends itself when this process is gone: then its standard input has an end.
            self._process = process = subprocess.Popen(
                [str(home / "bin" / "spark-submit"), *settings, "pyspark-shell"],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._environment, _WHERE: str(where), "SPARK_CONNECT_MODE": "0"},
            )
        wait_until(lambda: where.exists() or process.poll() is not None, _START_SECONDS_MAX, "a JVM with Spark")
        with where.open("rb") as written:
            port, secret = read_int(written), UTF8Deserializer().loads(written)
        self._gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=secret))
        return port, secret

    @staticmethod
    def _known(gateway: JavaGateway) -> tuple[int, str]:
        return gateway.gateway_parameters.port, gateway.gateway_parameters.auth_token
