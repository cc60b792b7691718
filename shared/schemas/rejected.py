"""Rejected input: the value of topic `rejected` is the original bytes; the headers hold the rest.

Headers, all UTF-8: `reason` (one of `Reason`), `detail` (a sentence), `service`, `origin` (a request path, or
`topic/partition/offset`), `customer` where the input names one, `content-type` and `content-encoding` where there was a request.
"""

from typing import Final, Literal

Reason = Literal[
    "undecodable",
    "invalid",
    "too_large",
    "unknown_customer",
    "revoked_key",
    "forbidden_origin",
    "unknown_version",
    "unnumbered",
    "sampled",
    "unsigned",
    "fold_failed",
    "fire_failed",
    "quarantined",
    "object_refused",
    "table_full",
]

#: The application raised, on a record or at a deadline: the fault is its own, not the input's.
APPLICATION_FAILED: Final[tuple[Reason, ...]] = ("fold_failed", "fire_failed")
