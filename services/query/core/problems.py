"""Errors of a question, as problems of RFC 9457."""

from services.query.core import limits
from shared.http.problems import Fault, Problem


class Wrong(ValueError):
    """A question that cannot be answered as it is; each fault names its parameter."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(fault.detail for fault in faults))
        self.faults = faults

    def problem(self) -> Problem:
        """The answer."""
        return Problem(400, "The question is wrong", "question", errors=list(self.faults))


def wrong(parameter: str, detail: str, pointer: str | None = None) -> Wrong:
    """One fault of one parameter."""
    return Wrong(Fault(detail[: limits.DETAIL_CHARACTERS_MAX], parameter=parameter, pointer=pointer))
