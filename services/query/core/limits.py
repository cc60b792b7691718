"""Every limit of a question, the same for all callers."""

from typing import Final

METRICS_MAX: Final = 20
DIMENSIONS_MAX: Final = 2
#: Groups that are listed; the others are added up.
GROUPS_MAX: Final = 1_000
#: Groups of a series by dimension.
SERIES_MAX: Final = 50
POINTS_MAX: Final = 2_000
#: Of all points and lines of a series: its answer costs 3 us of CPU and 50 bytes for each.
FIGURES_MAX: Final = 100_000
#: More views no group has.
VIEWS_MAX: Final = 1_000_000_000_000
FILTER_BYTES_MAX: Final = 32_768
FILTER_DEPTH_MAX: Final = 8
FILTER_NODES_MAX: Final = 200
FILTER_VALUES_MAX: Final = 1_000
#: That a filter names: each is an entry of the audit log.
VIEWERS_MAX: Final = 20
CUSTOMERS_MAX: Final = 200
VALUE_CHARACTERS_MAX: Final = 2_000
DETAIL_CHARACTERS_MAX: Final = 300
#: The years in which views may count.
FIRST_MS: Final = 0
LAST_MS: Final = 9_000_000_000_000
DAYS_MAX: Final = 400
