"""`/v1/profile`: what people see and change of their own login."""

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Annotated, Any

import msgspec

from services.accounts.core.credentials import Kind
from services.accounts.core.roles import Role
from services.accounts.core.totp import CodeWrong
from services.accounts.http.access import ACCOUNT
from services.accounts.http.problems import forbidden
from services.accounts.http.v1.operations import Call, Done, Operation
from services.accounts.http.v1.tenants import Name
from services.accounts.profile import Profile
from services.accounts.service import LoginWrong
from services.rim.http.problems import Refused
from shared.http.problems import Problem

#: A password that is too long is refused by the rule of passwords, which says why.
_Password = Annotated[str, msgspec.Meta(max_length=1_000)]


class OwnProfile(msgspec.Struct, frozen=True):
    """The person who is logged in. `recovery_codes`: how many are left."""

    email: str
    name: str
    role: Role | None
    organisation: str
    has_password: bool
    has_second_factor: bool
    recovery_codes: int


class ProfileChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Another name."""

    name: Name


class PasswordChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The present password, and the one to come."""

    password: _Password
    present: _Password = ""


class Present(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The present password."""

    present: _Password = ""


class BegunFactor(msgspec.Struct, frozen=True):
    """The secret for an app that makes codes. No login asks for a code before one was confirmed."""

    secret: str
    address: str


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A code of the app."""

    code: Annotated[str, msgspec.Meta(max_length=40)]


class RecoveryCodes(msgspec.Struct, frozen=True):
    """Codes that each work once instead of one of the app. They are in this answer and nowhere else."""

    codes: list[str]


class ProfileOperations:
    """The operations; for people alone."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile

    def operations(self) -> list[Operation]:
        """All of them."""
        return [
            Operation("get", "/v1/profile", "Who is logged in", ACCOUNT, self.show, OwnProfile),
            Operation("patch", "/v1/profile", "Another name", ACCOUNT, self.change, body=ProfileChange),
            Operation(
                "post",
                "/v1/profile/password",
                "Another password; all other sessions end",
                ACCOUNT,
                _confirmed(self.set_password),
                body=PasswordChange,
            ),
            Operation(
                "post",
                "/v1/profile/second-factor",
                "Begins a second factor (TOTP)",
                ACCOUNT,
                _confirmed(self.begin),
                BegunFactor,
                body=Present,
                can_conflict=True,
            ),
            Operation(
                "post",
                "/v1/profile/second-factor/confirm",
                "Logins ask for a code from now on",
                ACCOUNT,
                _confirmed(self.confirm),
                RecoveryCodes,
                body=Code,
                can_conflict=True,
            ),
            Operation(
                "post",
                "/v1/profile/second-factor/end",
                "Logins ask for no code any more",
                ACCOUNT,
                _confirmed(self.end),
                body=Present,
            ),
        ]

    async def show(self, call: Call) -> OwnProfile:
        """The profile of who asks."""
        _check_person(call)
        found, principal = await self._profile.of(call.principal), call.principal
        return OwnProfile(
            found.email,
            found.name,
            principal.role,
            principal.organisation,
            found.password_hash is not None,
            found.has_totp,
            found.recovery_codes,
        )

    async def change(self, call: Call) -> Done:
        """Changes the profile of who asks."""
        _check_person(call)
        await self._profile.set_name(call.body.name, call.actor)
        return Done()

    async def set_password(self, call: Call) -> Done:
        """This session continues."""
        _check_person(call)
        wanted: PasswordChange = call.body
        await self._profile.set_password(call.principal, call.credential, wanted.present, wanted.password, call.actor)
        return Done()

    async def begin(self, call: Call) -> BegunFactor:
        """The secret replaces one that was begun and not confirmed."""
        _check_person(call)
        made = await self._profile.begin_totp(call.principal, call.body.present, call.actor)
        return BegunFactor(made.secret, made.address)

    async def confirm(self, call: Call) -> RecoveryCodes:
        """With a code of the app."""
        _check_person(call)
        return RecoveryCodes(await self._profile.confirm_totp(call.body.code, call.actor))

    async def end(self, call: Call) -> Done:
        """With the password."""
        _check_person(call)
        await self._profile.end_totp(call.principal, call.body.present, call.actor)
        return Done()


def _check_person(call: Call) -> None:
    if call.credential.kind is not Kind.SESSION:
        raise forbidden("a token has no profile")


def _confirmed(handle: Callable[[Call], Awaitable[Any]]) -> Callable[[Call], Awaitable[Any]]:
    """`handle`; the session goes on where a password or a code is wrong, so that is no 401."""

    @wraps(handle)
    async def answer(call: Call) -> Any:
        try:
            return await handle(call)
        except LoginWrong:
            raise Refused(Problem(403, "The present password is wrong", "password")) from None
        except CodeWrong as error:
            raise Refused(Problem(403, "The code is wrong", "code", str(error))) from None

    return answer
