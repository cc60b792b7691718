"""The demo's own account: an organisation with one owner, who logs in by links, and a token for what compares."""

from typing import Final
from urllib.parse import quote

from services.accounts import commands

OWNER: Final = "owner@demo.localhost"
ORGANISATION: Final = "Demo"


def token(postgres_dsn: str) -> str:
    """A bearer token that reads everything. Makes the account where there is none."""
    return commands.make_tenant(postgres_dsn, organisation=ORGANISATION, email=OWNER).token


def link(postgres_dsn: str, page_url: str, path: str = "/") -> str:
    """An address of the page that logs its owner in, once, and leads to this path."""
    text = commands.login_link(postgres_dsn, OWNER)
    assert text is not None, "the account was made before"
    way = "" if path == "/" else f"?to={quote(path, safe='')}"
    return f"{page_url}login{way}#{text}"
