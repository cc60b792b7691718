"""The numbers of advisory locks in Postgres.

All services may share one database, in which these numbers are one space. So each lock has its number here, and no other module
has one.
"""

from typing import Final

#: Of a transaction that brings a service's schema up to date.
MIGRATIONS: Final = 7_316_201_944
#: Of a transaction that writes `serving.views`: the finalizer's triggers take it by this number.
VIEWS: Final = 7_316_201_945
#: Of the session that lands topic `live`, as long as it lives.
LIVE_MINUTES: Final = 7_316_201_946
#: Of a transaction that adds a request to delete data.
DELETIONS: Final = 7_316_201_947
#: Of the session of a reprocess, or of a deletion of rows, as long as it writes.
REPROCESS: Final = 7_316_201_948
#: Of a transaction that makes write keys.
KEYS: Final = 7_316_201_949
