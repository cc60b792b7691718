"""Principal: the caller, and the permissions of that person or token. Pure."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from services.accounts.core.customer_scope import CustomerScope
from services.accounts.core.roles import Permission, Role


@dataclass(frozen=True)
class Principal:
    """The caller, as of one moment."""

    kind: Literal["person", "token"]
    id: str
    #: An e-mail address, or a token's name.
    name: str
    organisation_id: str
    organisation: str
    #: None: a token.
    role: Role | None
    permissions: frozenset[Permission]
    scope: CustomerScope
    #: Whether the organisation runs the installation: it owns all customers that nobody else does.
    runs_installation: bool
    #: Of a token its end, if it has one.
    ends_at: datetime | None = None

    @property
    def caller(self) -> str:
        """What limits of requests and questions know it by."""
        return f"{self.kind}:{self.id}"

    @property
    def asker(self) -> tuple[str, str]:
        """Its organisation, and the caller: organisations take turns and have shares, and within each its callers.

        An organisation has hundreds of tokens, so by caller alone it would have hundreds of turns beside another's one.
        """
        return self.organisation_id, self.caller

    def may(self, permission: Permission) -> bool:
        """Whether it has this permission."""
        return permission in self.permissions

    @property
    def operates(self) -> bool:
        """Whether it may see what belongs to no customer: partitions, slots, services."""
        return self.runs_installation and self.may(Permission.MANAGE)
