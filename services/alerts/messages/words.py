"""The words of a message: title, text, and the values that a template may name. Pure."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from string import Template
from typing import Final

from shared.schemas.alerts.event import AlertEvent, Evidence
from shared.schemas.alerts.rule import MetricName

_UNITS: Final[Mapping[MetricName, str]] = {
    "startup_ms": "ms",
    "watch_ms": "ms",
    "bitrate": "bps",
    "views_started": "/min",
    "beacons": "/min",
}
_PLAIN: Final = frozenset({"viewers"})
#: Of what the hits of a metric are a number, where they are no viewers.
_HIT: Final[Mapping[MetricName, str]] = {"rejected": "beacons"}
_CHANGES: Final = {"opened": "Alert", "updated": "Still", "closed": "Over"}
#: What a template may name, as `$name`.
NAMES: Final = (
    *("title", "change", "severity", "rule", "customer", "metric", "value", "usual", "where", "affected", "suspect"),
    *("opened", "link", "incident"),
)


class TemplateWrong(ValueError):
    """The template names something that no message has."""


def check_template(template: str) -> None:
    """Raises `TemplateWrong`."""
    found = Template(template)
    if not found.is_valid():
        raise TemplateWrong("a $ is followed by a name, or by another $")
    unknown = sorted(set(found.get_identifiers()) - set(NAMES))
    if unknown:
        raise TemplateWrong(f"${unknown[0][:60]} is not known; names are {', '.join(NAMES)}")


def values(event: AlertEvent, link: str) -> dict[str, str]:
    """The values of `NAMES`."""
    worst = event.slices[0] if event.slices else None
    value = "" if worst is None else figure(event.metric, worst.value)
    usual = "" if worst is None else figure(event.metric, worst.usual)
    where = place(worst) if worst is None or worst.slice else f"all {'beacons' if event.metric in _HIT else 'views'}"
    suspect = next(
        (f"{place(one)} ({one.explains:.0%} of it, {one.share:.0%} of {hit_of(event)})" for one in event.suspects), ""
    )
    return {
        "title": f"{_CHANGES[event.change]}: {event.rule_name} ({event.customer_id})",
        "change": event.change,
        "severity": event.severity,
        "rule": event.rule_name,
        "customer": event.customer_id,
        "metric": event.metric,
        "value": value,
        "usual": usual,
        "where": where,
        "affected": str(event.affected_max),
        "suspect": suspect,
        "opened": datetime.fromtimestamp(event.opened_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
        "link": link,
        "incident": event.incident_id,
    }


def text(
    event: AlertEvent, link: str, template: str | None, *, escaped: Callable[[str], str] = lambda words: words
) -> str:
    """The text of a message: the template's, or the product's own. `escaped` is what a receiver's format needs of values."""
    found = {name: value if name == "link" else escaped(value) for name, value in values(event, link).items()}
    if template is not None:
        return Template(template).safe_substitute(found)
    if event.change == "closed":
        minutes = max(1, round((event.last_ms - event.opened_ms) / 60_000))
        first = f"{found['metric']} is as usual again. It lasted about {minutes} min, in {found['where']}."
    else:
        beside = "limit" if event.slices and event.slices[0].probability is None else "usual"
        first = f"{found['metric']} is {found['value']} ({beside}: {found['usual']}) in {found['where']}."
    more = f" {len(event.slices) + event.further_slices - 1} more slices." if len(event.slices) > 1 else ""
    lines = [first + more]
    if event.affected_max:
        lines.append(f"At most {event.affected_max} {hit_of(event)} at a time.")
    if found["suspect"]:
        lines.append(f"First suspect: {found['suspect']}.")
    return "\n".join([*lines, f"Since {found['opened']}. {link}"])


def hit_of(event: AlertEvent) -> str:
    """The unit of those that are hit."""
    return _HIT.get(event.metric, "viewers")


def figure(metric: MetricName, value: float) -> str:
    """A figure with its unit."""
    if metric in _UNITS:
        return f"{value:,.0f} {_UNITS[metric]}".replace(" /", "/")
    return f"{value:,.0f}" if metric in _PLAIN else f"{value:.2%}"


def place(one: "Evidence | object | None") -> str:
    """Where: `cdn=a, country=DE`."""
    found: Mapping[str, str] = getattr(one, "slice", {})
    return ", ".join(f"{dimension}={_line(value)}" for dimension, value in found.items()) or "all views"


def _line(value: str) -> str:
    """What viewers send, in one line: it begins no line of a message that would look like the product's own."""
    return "".join(one if one.isprintable() else " " for one in value)
