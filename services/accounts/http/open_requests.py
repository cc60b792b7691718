"""How many requests are open at a time that are passed on to another service, which finds out who asks.

Each holds a connection to that service until its answer is sent. They are counted by the credential that they give, and by
address, because anybody can invent credentials.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Final

from aiohttp import web

from services.accounts.core.credentials import Credential
from services.accounts.core.sites import site_of
from services.rim.turns.question_limits import QuestionLimit

#: Of the connections to the other service, the part that one credential may hold, and one address: a proxy that is not declared
#: is one address for everybody.
_OF_CREDENTIAL: Final = 0.2
_OF_ADDRESS: Final = 0.5


class OpenRequests:
    """Those of one service, of which at most `connections_max` are passed on at a time.

    `credential` is what a request gives to be recognised by, `address` that of its client.
    """

    def __init__(
        self,
        connections_max: int,
        *,
        credential: Callable[[web.Request], Credential | None] = lambda _: None,
        address: Callable[[web.Request], str | None] = lambda request: request.remote,
    ) -> None:
        self._credential = credential
        self._address = address
        self._of_credentials = QuestionLimit(max(1, int(_OF_CREDENTIAL * connections_max)))
        self._of_addresses = QuestionLimit(max(1, int(_OF_ADDRESS * connections_max)))

    @contextmanager
    def counted(self, request: web.Request) -> Iterator[None]:
        """Counts a request while the block runs; raises `TooManyQuestions`."""
        given = self._credential(request)
        by_credential = nullcontext() if given is None else self._of_credentials.of(given.text)
        with self._of_addresses.of(site_of(self._address(request))), by_credential:
            yield
