"""Profile: what people change of their own login: name, password, second factor."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from services.accounts.core import totp
from services.accounts.core.credentials import Credential
from services.accounts.core.passwords import check_password
from services.accounts.core.principal import Principal
from services.accounts.core.texts import checked_name
from services.accounts.service import Accounts, LoginWrong
from services.accounts.store.audit import Actor
from services.accounts.store.logins import factors
from services.accounts.store.logins.factors import Factors

#: Whom an app shows a code to be for.
ISSUER: Final = "Playhead"


@dataclass(frozen=True)
class NewFactor:
    """A second factor that was begun."""

    secret: str
    #: `otpauth:...`
    address: str


class Profile:
    """Belongs to one event loop. Everything raises what asks of `Postgres` raise, besides what its docstring says."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._ask = accounts.postgres.ask

    async def of(self, principal: Principal) -> Factors:
        """The login factors of the person. Raises `LoginWrong` if there is no such person."""
        found = await self._ask(partial(factors.factors_of, person_id=principal.id))
        if found is None:
            raise LoginWrong
        return found

    async def set_name(self, name: str, actor: Actor) -> None:
        """Raises `TextWrong`."""
        await self._ask(partial(factors.set_name, actor=actor, name=checked_name(name, "a name")))

    async def set_password(
        self, principal: Principal, session: Credential, present: str, wanted: str, actor: Actor
    ) -> None:
        """Gives the person another password, and ends all other sessions.

        Raises `LoginWrong`, `LoginsTooMany` or `PasswordWeak`.
        """
        check_password(wanted, email=principal.name)
        await self._confirm(principal, present, actor)
        hashed = await self._accounts.passwords.hash(wanted)
        await self._ask(partial(factors.set_password, actor=actor, password_hash=hashed, keep=session))

    async def begin_totp(self, principal: Principal, present: str, actor: Actor) -> NewFactor:
        """A secret for an app; no login asks for it yet. Raises `LoginWrong`, `LoginsTooMany` or `FactorExists`."""
        await self._confirm(principal, present, actor)
        secret = totp.secret_of(self._accounts.random(totp.SECRET_BYTES))
        await self._ask(partial(factors.begin_totp, person_id=principal.id, secret=secret))
        return NewFactor(secret, totp.address_of(secret, email=principal.name, issuer=ISSUER))

    async def confirm_totp(self, code: str, actor: Actor) -> list[str]:
        """From now on logins ask for a code; the recovery codes. Raises `CodeWrong`, `FactorExists` or `FactorMissing`."""
        codes = totp.recovery_codes(self._accounts.random(totp.RECOVERY_CODES * totp.RECOVERY_BYTES))
        hashes = [hashed for code_ in codes if (hashed := totp.recovery_hash(code_)) is not None]
        confirm = partial(
            factors.confirm_totp, actor=actor, code=code, now_seconds=self._accounts.now_seconds(), recovery=hashes
        )
        await self._ask(confirm)
        return codes

    async def end_totp(self, principal: Principal, present: str, actor: Actor) -> None:
        """Logins ask for a password alone again. Raises `LoginWrong` or `LoginsTooMany`."""
        await self._confirm(principal, present, actor)
        await self._ask(partial(factors.end_totp, actor=actor))

    async def _confirm(self, principal: Principal, password: str, actor: Actor) -> None:
        """Who sits at an open session may not be its person. Counted as logins are.

        A person without a password logs in by a provider or a link alone, and has nothing to confirm with.
        """
        found = await self.of(principal)
        if found.password_hash is not None and not await self._accounts.is_password(
            found.password_hash, password, email=principal.name, address=actor.address
        ):
            raise LoginWrong
