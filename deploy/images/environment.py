"""Secrets of a stack of deploy/compose.yaml, made at random: `python -m deploy.images.environment > .local/compose.env`.

`docker compose --env-file .local/compose.env --file deploy/compose.yaml up --detach` takes them.
"""

import secrets
import sys
from typing import Final

from services.rim.http.credentials import Scope, entry

#: Who asks lookups, and for what.
CALLERS: Final[dict[str, tuple[Scope, ...]]] = {"DASHBOARD": ("lookups", "partitions"), "QUERY": ("lookups",)}
#: Who logs in at Postgres; POSTGRES is its superuser.
DATABASE_USERS: Final = ("POSTGRES", "COLLECTOR", "FINALIZER", "SERVING", "QUERY", "DASHBOARD")


def made() -> dict[str, str]:
    """Each variable that the compose file wants."""
    tokens = {f"{caller}_LOOKUP_TOKEN": secrets.token_hex(24) for caller in CALLERS}
    entries = (entry(name.lower(), scopes, tokens[f"{name}_LOOKUP_TOKEN"]) for name, scopes in CALLERS.items())
    return {
        "ADMIN_TOKEN": secrets.token_hex(24),
        "SLOTS_TOKEN": secrets.token_hex(24),
        **tokens,
        "LOOKUP_CREDENTIALS": " ".join(entries),
        **{f"{user}_PASSWORD": secrets.token_hex(16) for user in DATABASE_USERS},
        # Of the page's administrator, and of its user in Postgres.
        "GRAFANA_PASSWORD": secrets.token_hex(16),
        "GRAFANA_POSTGRES_PASSWORD": secrets.token_hex(16),
    }


if __name__ == "__main__":
    sys.stdout.writelines(f"{name}={value}\n" for name, value in made().items())
