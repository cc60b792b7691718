"""When Python searches for reference cycles: rarely, since only errors leave cycles in these processes."""

import gc
import threading
from time import thread_time
from typing import Any, Final

#: Objects made and not freed until the youngest generation is examined (Python's default: 700). A request holds some hundreds, a
#: batch of messages thousands, so by default nearly each would be examined while it is still in use.
OBJECTS_MAX: Final = 50_000
#: Examinations of the youngest generation per one of the middle, and of the middle per one of the oldest.
ROUNDS: Final = (20, 20)
#: The same where views are folded: until a commit the process holds what it has read and changed since the last one.
FOLD_OBJECTS_MAX: Final = 500_000
#: CPU seconds that the searches of a thread took, and its clock when the present one began.
_searches = threading.local()


def look_seldom(objects_max: int = OBJECTS_MAX) -> None:
    """Excludes the objects of the start-up for good, and lets many objects collect before an examination.

    Call it once everything is imported. What is freed by its last reference, as nearly everything is, is not concerned.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(objects_max, *ROUNDS)
    if _note not in gc.callbacks:
        gc.callbacks.append(_note)


def work_seconds() -> float:
    """The CPU time of this thread without its searches, in seconds.

    A search takes 20 to 70 ms, and begins with the request that makes the last of `OBJECTS_MAX` objects: it is not that one's cost.
    """
    return thread_time() - getattr(_searches, "seconds", 0.0)


def _note(phase: str, _info: dict[str, Any]) -> None:
    # A search begins and ends in one thread.
    if phase == "start":
        _searches.begun = thread_time()
    else:
        _searches.seconds = getattr(_searches, "seconds", 0.0) + thread_time() - _searches.begun
