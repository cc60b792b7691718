"""How many customers and write keys an installation has: collectors hold so many, and what makes keys makes no more."""

from typing import Final

CUSTOMERS_MAX: Final = 200_000
#: Places for keys that are in force. A key takes one, and one more for each origin of its own: that bounds their memory.
KEY_PLACES_MAX: Final = 500_000
