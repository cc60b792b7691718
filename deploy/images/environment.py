"""Secrets of a stack of deploy/compose.yaml, made at random: `python -m deploy.images.environment compose.env`.

`docker compose --env-file compose.env --file deploy/compose.yaml up --detach` takes them. The file may be the only copy of the
passwords that Postgres has on its volume: a second run keeps every value and adds what a newer version wants.
"""

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from services.rim.http.credentials import Scope, entry

#: Who asks lookups, and for what.
CALLERS: Final[dict[str, tuple[Scope, ...]]] = {"DASHBOARD": ("lookups", "partitions"), "QUERY": ("lookups",)}
#: Who logs in at Postgres; POSTGRES is its superuser.
DATABASE_USERS: Final = ("POSTGRES", "COLLECTOR", "FINALIZER", "SERVING", "QUERY", "DASHBOARD")
_CREDENTIALS: Final = "LOOKUP_CREDENTIALS"


def made(kept: Mapping[str, str] | None = None) -> dict[str, str]:
    """Each variable that the compose file wants; those of `kept` as they are, but for callers that lookups do not know yet."""
    kept = kept or {}
    tokens = {f"{caller}_LOOKUP_TOKEN": secrets.token_hex(24) for caller in CALLERS}
    values = {
        "ADMIN_TOKEN": secrets.token_hex(24),
        "SLOTS_TOKEN": secrets.token_hex(24),
        **tokens,
        **{f"{user}_PASSWORD": secrets.token_hex(16) for user in DATABASE_USERS},
        # Of the page's administrator, and of its user in Postgres.
        "GRAFANA_PASSWORD": secrets.token_hex(16),
        "GRAFANA_POSTGRES_PASSWORD": secrets.token_hex(16),
        **kept,
    }
    entries = kept.get(_CREDENTIALS, "").split()
    wanted = (entry(name.lower(), scopes, values[f"{name}_LOOKUP_TOKEN"]) for name, scopes in CALLERS.items())
    return values | {_CREDENTIALS: " ".join([*entries, *(each for each in wanted if each not in entries)])}


def complete(file: Path) -> list[str]:
    """Makes the file, for its owner alone, or adds what it lacks; the names of what is new. Raises `OSError`."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = {name.strip(): value.strip() for name, sign, value in (line.partition("=") for line in lines) if sign}
    kept = {name: value for name, value in kept.items() if value and not name.startswith("#")}
    new = {name: value for name, value in made(kept).items() if kept.get(name) != value}
    if not new:
        return []
    lines = [line for line in lines if line.partition("=")[0].strip() not in new]
    # Written beside it: nothing that ends this may leave a part of the secrets.
    beside = file.with_name(f"{file.name}.new")
    beside.touch(0o600, exist_ok=False)
    with beside.open("w", encoding="utf-8") as to:
        to.writelines(f"{line}\n" for line in [*lines, *(f"{name}={value}" for name, value in new.items())])
        to.flush()
        os.fsync(to.fileno())
    beside.replace(file)
    return list(new)


def main(arguments: Sequence[str]) -> int:
    """The command; 0 when the file has all."""
    if len(arguments) != 1:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    try:
        new = complete(Path(arguments[0]))
    except OSError as error:
        sys.stderr.write(f"{error.filename}: {error.strerror}\n")
        return 1
    sys.stdout.write(f"{arguments[0]}: {'new: ' + ', '.join(new) if new else 'it has all, nothing was changed'}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
