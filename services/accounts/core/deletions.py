"""What a request to delete data goes through. Pure."""

import hashlib
import re
from enum import StrEnum
from typing import Final
from urllib.parse import unquote_plus


class Step(StrEnum):
    """One kind of place, in the order in which they are done. Each may be repeated after a crash."""

    #: The warehouse has what topic `beacons` had: it names the views whose state may be open.
    FOUND = "found"
    #: State of the processor, quarantined state included.
    STATE = "state"
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


def sha256_of(viewer: str) -> bytes:
    """Who a viewer was, once the id is deleted. NUL is what Postgres stores in its place."""
    return hashlib.sha256(viewer.replace("\0", "\ufffd").encode()).digest()


def names_viewer(text: str, viewer: str) -> bool:
    """Whether a name or an address of the page, percent-encoded or not, has the id of a viewer."""
    whole = re.escape(viewer)
    if len(viewer.encode()) < TELLING_BYTES:
        whole = rf"(?<![A-Za-z0-9]){whole}(?![A-Za-z0-9])"
    return any(re.search(whole, one) is not None for one in (text, unquote_plus(text)))
