"""A view's lot, by which it is sampled: as good as random, and the same in every answer, in SQL and in numpy. Pure.

Multiplicative hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4) of the time of a view's first record: bits from the
middle of the product. The time itself is not enough: of data that was restored or imported it may be whole seconds.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shared.statistics.suspects.sampling import FEW_OF

#: The field of a view that says it, ms since 1970; a view without one has no lot.
SAMPLED_BY: Final = "first_append_ms"
#: 40 bits times 23 bits fit into a signed number of 64.
_BITS: Final = (1 << 40) - 1
_FACTOR: Final = 6_364_137
_SHIFT: Final = 20

LOT: Final = f"((({SAMPLED_BY} & {_BITS}) * {_FACTOR}) >> {_SHIFT})"
#: The few views of which there is one in `FEW_OF`: columns in memory have them first.
IS_OF_FEW: Final = f"{LOT} % {FEW_OF} = 0"


def lots(times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
    """The lots of views by the times of their first records, ms since 1970."""
    found: NDArray[np.int64] = ((times_ms & _BITS) * _FACTOR) >> _SHIFT
    return found


def one_in(views: int) -> str:
    """The condition of one view in so many."""
    return "true" if views == 1 else f"{LOT} % {views:d} = 0"
