"""When Python searches for reference cycles: rarely, since only errors leave cycles in these processes."""

import gc
from typing import Final

#: Objects made and not freed until the youngest are looked at (Python's own: 700). A request holds some hundreds, a batch
#: of messages thousands, so by default nearly each would be looked at while it is still in use.
OBJECTS_MAX: Final = 50_000
#: Looks at the youngest between looks at the middle-aged, and of those between looks at everything.
ROUNDS: Final = (20, 20)


def look_seldom() -> None:
    """Sets what start-up has made aside for good, and lets many objects gather before they are looked at.

    Call it once everything is imported. What is freed by its last reference, as nearly everything is, is not concerned.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(OBJECTS_MAX, *ROUNDS)
