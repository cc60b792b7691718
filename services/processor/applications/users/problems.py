"""problems: the errors of the REST API of users, as problem documents."""

from shared.http.problems import Fault, Problem


class RequestRefused(ValueError):
    """The request cannot be carried out; `problem` gives the reason."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.title)
        self.problem = problem


def not_found(user_id: str) -> Problem:
    """There is no such user."""
    return Problem(404, "There is no such user", "no-such-user", f"no user has the id {user_id}")


def invalid(faults: list[Fault]) -> Problem:
    """The body is JSON, but not what is wanted."""
    return Problem(422, "The request has invalid fields", "invalid-fields", errors=faults)


def email_taken() -> Problem:
    """Another user has the e-mail address."""
    fault = Fault("another user has this e-mail address", pointer="#/email")
    return Problem(409, "The e-mail address is taken", "email-taken", errors=[fault])


def id_taken() -> Problem:
    """A user was made under the idempotency key, longer ago than keys are kept."""
    fault = Fault("it has made a user before, longer ago than outcomes are kept", header="Idempotency-Key")
    return Problem(409, "The idempotency key was used before", "key-used", errors=[fault])


def other_version(version: int) -> Problem:
    """The user is not in the version that the client knows."""
    fault = Fault(f'the user has the entity tag "{version}"', header="If-Match")
    return Problem(412, "The user was changed meanwhile", "other-version", errors=[fault])


def other_request() -> Problem:
    """An idempotency key came again with something else."""
    fault = Fault("this key was used for another request", header="Idempotency-Key")
    return Problem(422, "The idempotency key is another request's", "other-request", errors=[fault])


def busy() -> Problem:
    """Too many changes of one user wait for an e-mail address."""
    return Problem(503, "Too many changes of this user wait", "busy", "ask again in a moment")
