"""How many customers and write keys an installation has: collectors hold so many, and what makes keys makes no more."""

from typing import Final

CUSTOMERS_MAX: Final = 200_000
#: Places for keys that are in force: that bounds their memory.
KEY_PLACES_MAX: Final = 500_000

#: SQL, of a row of table `collector.keys`: whether it is in force.
IN_FORCE: Final = "(revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now()))"
#: How many places it takes: one, and one more for each origin of its own.
PLACES: Final = "(1 + cardinality(origins))"
#: When it ended.
ENDED_AT: Final = "least(revoked_at, expires_at)"
