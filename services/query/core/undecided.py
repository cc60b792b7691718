"""What of a view only its end decides: while it is open, its row says what would hold if it ended now. Pure."""

from collections.abc import Mapping
from typing import Any, Final

from services.query.core.dimensions import DIMENSIONS

#: Fields of a row that mean nothing before the view is over.
BY_END: Final = ("end_reason", "view_dropped", "complete", "ebvs", "spi_good")
#: Dimensions of which no open view has a value.
DIMENSIONS_BY_END: Final = frozenset(name for name, one in DIMENSIONS.items() if set(one.fields) <= set(BY_END))


def undecided(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of an open view's row that its end decides: those above, and that it never started."""
    return (*BY_END, "startup_unknown") if row.get("startup_unknown") == "not_started" else BY_END
