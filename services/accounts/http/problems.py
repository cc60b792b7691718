"""Errors that handlers raise, as problems (RFC 9457)."""

from collections.abc import Mapping
from typing import Final

from aiohttp import web

from services.accounts.core.pages import CursorWrong
from services.accounts.core.passwords import PasswordWeak
from services.accounts.core.roles import ScopesWrong
from services.accounts.core.texts import TextWrong
from services.accounts.core.thresholds import ThresholdWrong
from services.accounts.core.totp import CodeWrong
from services.accounts.credential_queue import TooManyWaiting
from services.accounts.http.requests import BodyWrong
from services.accounts.service import CodeNeeded, LoginsTooMany, LoginWrong
from services.accounts.store.credentials.keys import KeyUnknown, NoPlaceForKey, TooManyKeys
from services.accounts.store.credentials.tokens import EndTooLate, TooManyTokens
from services.accounts.store.customers.custom_dimensions import TooManyDimensions
from services.accounts.store.customers.deletions import TooManyDeletions
from services.accounts.store.customers.saved_views import SavedViewUnknown, TooManySavedViews
from services.accounts.store.logins.factors import FactorExists, FactorMissing
from services.accounts.store.logins.links import AccountExists, LinkSpent
from services.accounts.store.tenants.invitations import MemberAlready, TooManyInvitations
from services.accounts.store.tenants.members import MemberUnknown, RoleRefused
from services.accounts.store.tenants.organisations import (
    CustomerTaken,
    CustomerUnknown,
    DeletionUnderWay,
    OrganisationHasPeople,
    OrganisationUnknown,
)
from services.rim.database.pool import NotPublished, PostgresAway, QueryRefused
from services.rim.http.problems import RETRY_SECONDS, TOO_MANY_QUESTIONS, UNKNOWN_CUSTOMER, Refused, problem_response
from services.rim.turns.question_limits import TooManyQuestions
from shared.http.problems import Problem

#: Those whose text is written for the one who asks.
_TEXTS: Final = (TextWrong, PasswordWeak, ScopesWrong, ThresholdWrong, BodyWrong, CursorWrong)
_PROBLEMS: Final[Mapping[type[Exception], Problem]] = {
    # Before what it is a kind of.
    TooManyWaiting: Problem(429, "Too Many Requests", "too-many", "too many requests of this address at a time"),
    TooManyQuestions: TOO_MANY_QUESTIONS,
    PostgresAway: Problem(503, "Postgres does not answer", "postgres-away"),
    NotPublished: Problem(503, "The database has no accounts yet", "accounts"),
    QueryRefused: Problem(500, "Postgres refuses the query", "refused"),
    LinkSpent: Problem(410, "The link is unknown, was used, or has expired", "link"),
    AccountExists: Problem(
        401, "This address has an account: give its password, or log in at your provider", "account-exists"
    ),
    LoginWrong: Problem(401, "The address or the password is wrong", "login"),
    CodeNeeded: Problem(401, "This account asks for a code of its second factor too", "code-needed"),
    CodeWrong: Problem(401, "The code is wrong, old, or was used already", "code"),
    LoginsTooMany: Problem(429, "Too many logins have failed", "attempts"),
    TooManyTokens: Problem(409, "The organisation has as many tokens as it may", "tokens", "Revoke some."),
    EndTooLate: Problem(
        403,
        "This is not permitted",
        "permission",
        "a token makes no token that ends later than itself: without days, it ends with the one that makes it",
    ),
    TooManyInvitations: Problem(409, "The organisation has as many invitations as it may", "invitations"),
    MemberAlready: Problem(409, "This person is a member", "member", "Change the role of the member instead."),
    MemberUnknown: Problem(404, "There is no such person", "unknown"),
    OrganisationHasPeople: Problem(
        409, "Somebody has joined this organisation", "people", "Its own people invite others."
    ),
    OrganisationUnknown: Problem(404, "There is no such organisation", "unknown"),
    CustomerUnknown: UNKNOWN_CUSTOMER,
    CustomerTaken: Problem(409, "This customer exists, or there are as many as may be", "customer"),
    DeletionUnderWay: Problem(
        409, "Data of this customer is being deleted", "deletion", "Give the customer away when that is done."
    ),
    KeyUnknown: Problem(404, "There is no such key", "unknown"),
    TooManyKeys: Problem(409, "The customer has as many keys as it may", "keys", "Revoke some."),
    NoPlaceForKey: Problem(
        409,
        "The organisation or the installation has as many keys, origins and customers as it may",
        "keys",
        "Revoke keys, or give them fewer origins.",
    ),
    TooManyDeletions: Problem(409, "The organisation has as many deletions under way as it may", "deletions"),
    SavedViewUnknown: Problem(404, "There is no such saved view", "unknown"),
    TooManyDimensions: Problem(409, "There are as many titles as may be", "custom-dimensions", "Take some away."),
    TooManySavedViews: Problem(409, "There are as many saved views as may be", "saved-views", "Delete some."),
    FactorExists: Problem(409, "There is a second factor already", "factor"),
    FactorMissing: Problem(409, "No second factor was begun", "factor"),
    PermissionError: Problem(403, "Only who runs the installation may do this", "permission"),
}
#: What a handler may raise that has an answer.
ANSWERED: Final[tuple[type[Exception], ...]] = (Refused, RoleRefused, *_TEXTS, *_PROBLEMS)


def problem_of(error: Exception) -> Problem:
    """The problem of one of `ANSWERED`."""
    if isinstance(error, Refused):
        return error.problem
    if isinstance(error, RoleRefused):
        return Problem(403, "This role may not do that", "role", str(error))
    if isinstance(error, _TEXTS):
        return Problem(400, "The request is wrong", "request", str(error))
    return next(problem for kind, problem in _PROBLEMS.items() if isinstance(error, kind))


def answer_of(error: Exception) -> web.Response:
    """The answer to one of `ANSWERED`."""
    return problem_response(
        problem_of(error), retry_seconds=error.seconds if isinstance(error, LoginsTooMany) else RETRY_SECONDS
    )


def unknown(what: str) -> Refused:
    """404."""
    return Refused(Problem(404, f"There is no such {what}", "unknown"))


def forbidden(detail: str) -> Refused:
    """403."""
    return Refused(Problem(403, "This is not permitted", "permission", detail))
