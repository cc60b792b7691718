"""Numbers of clients, converted to numbers within bounds, never an error."""

import math
from typing import Any

from shared.schemas.view import NUMBER_MAX


def whole(value: Any) -> int:
    """A number as the client sent it (Roku sends strings), rounded, within 0..`NUMBER_MAX`; 0 for anything else."""
    if value.__class__ is int:
        return value if 0 <= value <= NUMBER_MAX else 0 if value < 0 else NUMBER_MAX
    return round(real(value))


def client_ms(value: Any) -> int:
    """A time by a client's clock, as `whole`; 1 for 0, which stands for no time (docs/view.md, "Time, gaps and clocks")."""
    return whole(value) or 1


def real(value: Any) -> float:
    """A number as the client sent it, within 0..`NUMBER_MAX`; 0 for anything else."""
    return measured_real(value) or 0.0


def measured(value: Any) -> int | None:
    """As `whole`, but None for what is no number, or a negative one: the client has measured nothing."""
    if value.__class__ is int and 0 <= value <= NUMBER_MAX:
        number: int = value
        return number
    real = measured_real(value)
    return None if real is None else round(real)


def measured_real(value: Any) -> float | None:
    """As `real`, but None for what is no number, or a negative one: the client has measured nothing."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or value < 0 or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return float(min(value, NUMBER_MAX))


def scalar(value: Any) -> Any:
    """The first item of a CMCD inner list `[[item, parameter], ...]`, or the value itself."""
    if isinstance(value, list):
        return value[0][0] if value and isinstance(value[0], list) and value[0] else None
    return value
