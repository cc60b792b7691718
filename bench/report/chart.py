"""A bar chart as SVG: small, without a library, readable on light and dark pages."""

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

_WIDTH: Final = 760
_LABEL_WIDTH: Final = 330
_ROW_HEIGHT: Final = 26
_BAR_HEIGHT: Final = 16
_TOP: Final = 34
_VALUE_WIDTH: Final = 70


class Bar(NamedTuple):
    """One bar; Playhead's bars have their own colour."""

    label: str
    value: float
    is_ours: bool


def bars(title: str, rows: Sequence[Bar]) -> str:
    """The chart's SVG. Bars begin at zero."""
    longest = max((row.value for row in rows), default=0.0) or 1.0
    room = _WIDTH - _LABEL_WIDTH - _VALUE_WIDTH
    height = _TOP + _ROW_HEIGHT * len(rows) + 8
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" font-family="sans-serif"'
            ' font-size="13">'
        ),
        f"<title>{escape(title)}</title>",
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="8" y="20" font-weight="bold" fill="#222">{escape(title)}</text>',
    ]
    for number, row in enumerate(rows):
        top = _TOP + number * _ROW_HEIGHT
        base = top + _BAR_HEIGHT - 3
        width = round(row.value / longest * room, 1)
        colour = "#1f6feb" if row.is_ours else "#9aa4b2"
        lines += [
            f'<text x="{_LABEL_WIDTH - 8}" y="{base}" text-anchor="end" fill="#222">{escape(row.label)}</text>',
            f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{width}" height="{_BAR_HEIGHT}" fill="{colour}"/>',
            f'<text x="{_LABEL_WIDTH + width + 6}" y="{base}" fill="#222">{row.value:,.0f}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
