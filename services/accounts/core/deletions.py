"""The states and steps of a request to delete data. Pure."""

import hashlib
import re
from enum import StrEnum
from typing import Final
from urllib.parse import unquote_plus


class Step(StrEnum):
    """One kind of place, in the order in which they are done. Each may be repeated after a crash."""

    #: Of a customer its alert rules, before anything else: nobody is notified that its figures fall.
    RULES = "rules"
    #: The warehouse has what topic `beacons` had: it names the views whose state may be open.
    FOUND = "found"
    #: State of the processor, quarantined state included.
    STATE = "state"
    #: Of a customer what alerts and the applications of APIs learned, and incidents; of a viewer what people wrote of it there.
    LEARNED = "learned"
    #: The warehouse has what all topics had then: nothing that was sent before the request comes later.
    LANDED = "landed"
    #: Objects of recordings.
    RECORDINGS = "recordings"
    #: Tables of the warehouse and of Postgres, and their files.
    WAREHOUSE = "warehouse"
    #: Until when topics of Kafka have it.
    TOPICS = "topics"
    #: Exports and saved views that are kept. The service `query` does it, and ends the request.
    EXPORTS = "exports"


STEPS: Final = tuple(Step)
#: Of one organisation.
OPEN_MAX: Final = 1_000
VIEWER_CHARS_MAX: Final = 500
SESSIONS_MAX: Final = 10_000
#: An id with fewer bytes may be part of anything: it counts where no letter or digit is beside it.
TELLING_BYTES: Final = 8
#: In the place of a viewer's id, where a text stays.
DELETED: Final = "(deleted)"


def sha256_of(viewer: str) -> bytes:
    """The hash that identifies a viewer once the id is deleted. NUL is what Postgres stores in its place."""
    return hashlib.sha256(viewer.replace("\0", "\ufffd").encode()).digest()


def names_viewer(text: str, viewer: str) -> bool:
    """Whether a text that people wrote, percent-encoded or not, has the id of a viewer."""
    whole = _pattern(viewer)
    return any(re.search(whole, one) is not None for one in (text, unquote_plus(text)))


def without_viewer(text: str, viewer: str) -> str:
    """The text with `DELETED` in the place of the id; of one that has it percent-encoded, `DELETED` alone."""
    left = re.sub(_pattern(viewer), DELETED, text)
    return DELETED if names_viewer(left, viewer) else left


def _pattern(viewer: str) -> str:
    whole = re.escape(viewer)
    return whole if len(viewer.encode()) >= TELLING_BYTES else rf"(?<![A-Za-z0-9]){whole}(?![A-Za-z0-9])"
