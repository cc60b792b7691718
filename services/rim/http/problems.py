"""Problems (RFC 9457) as HTTP answers: every API of this project refuses by these."""

import math
from typing import Final

from aiohttp import web

from shared.http.problems import PROBLEM_JSON, Problem

#: What passes by itself says when to ask again.
_PASSING: Final = frozenset({429, 503})
RETRY_SECONDS: Final = 1


class Refused(Exception):
    """A handler's answer that is a problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.title)
        self.problem: Final = problem


def problem_response(problem: Problem, *, retry_seconds: float = RETRY_SECONDS) -> web.Response:
    """The answer that a problem is."""
    headers = {"Retry-After": str(max(1, math.ceil(retry_seconds)))} if problem.status in _PASSING else {}
    return web.Response(body=problem.encode(), content_type=PROBLEM_JSON, status=problem.status, headers=headers)
