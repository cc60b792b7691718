"""Roles of people, scopes of API tokens, and what each may do. Pure."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final


class Permission(StrEnum):
    """One kind of action on the customers of an organisation."""

    #: Figures of many views.
    READ_METRICS = "read_metrics"
    #: Single views, their sessions, traces and recordings.
    READ_VIEWS = "read_views"
    #: Send beacons through the product's API.
    INGEST = "ingest"
    #: Change what the product shows and sends, but not who may see it.
    EDIT = "edit"
    #: People, invitations, tokens and keys.
    MANAGE = "manage"
    #: Owners, and the organisation itself.
    OWN = "own"


class Role(StrEnum):
    """The role of a person in an organisation."""

    OWNER = "owner"
    ADMIN = "admin"
    EDITOR = "editor"
    VIEWER = "viewer"


_READ: Final = frozenset({Permission.READ_METRICS, Permission.READ_VIEWS})
_MAY: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.VIEWER: _READ,
    Role.EDITOR: _READ | {Permission.EDIT},
    Role.ADMIN: _READ | {Permission.EDIT, Permission.MANAGE},
    Role.OWNER: _READ | {Permission.EDIT, Permission.MANAGE, Permission.OWN},
}
#: What an API token may be given: no token makes owners or edits pages.
TOKEN_SCOPES: Final = (Permission.READ_METRICS, Permission.READ_VIEWS, Permission.MANAGE, Permission.INGEST)


class ScopesWrong(ValueError):
    """No scopes that a token can have."""


def permissions_of(role: Role) -> frozenset[Permission]:
    """The permissions of a person of this role."""
    return _MAY[role]


def token_scopes(names: Iterable[str]) -> frozenset[Permission]:
    """The scopes of these names. Raises `ScopesWrong`."""
    known = {scope.value: scope for scope in TOKEN_SCOPES}
    try:
        scopes = frozenset(known[name] for name in names)
    except KeyError as error:
        raise ScopesWrong(f"{error.args[0]!r} is no scope; scopes are {', '.join(known)}") from None
    if not scopes:
        raise ScopesWrong("a token has at least one scope")
    return scopes


def may_give(giver: Role, role: Role) -> bool:
    """Whether a person of role `giver` may give somebody this role, or take it away."""
    if role is Role.OWNER:
        return Permission.OWN in _MAY[giver]
    return Permission.MANAGE in _MAY[giver]


def given_by_token(scopes: frozenset[Permission], *, has_end: bool) -> frozenset[Role]:
    """The roles that an API token may give: those that may do no more than it. A role has no end, so one with an end gives none."""
    return frozenset() if has_end else frozenset(role for role, may in _MAY.items() if may <= scopes)
