"""Writes docs/settings.md: every variable of every service, from the classes that read them.

python -m deploy.settings_doc            writes the page
python -m deploy.settings_doc --check    exit code 1 when the page differs
"""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args, get_origin

from pydantic.fields import FieldInfo

from deploy.database import DatabaseSettings
from services.collector.settings import CollectorSettings
from services.dashboard.settings import DashboardSettings
from services.finalizer.settings import FinalizerSettings
from services.notifications.settings import NotificationsSettings
from services.processor.catalogue import SETTINGS as APPLICATIONS
from services.processor.settings import ProcessorSettings
from services.query.settings import QuerySettings
from services.serving.settings import ServingSettings
from services.webhooks.settings import WebhooksSettings
from shared.settings import Settings, SettingsGroup

PAGE: Final = Path(__file__).parents[1] / "docs" / "settings.md"

#: Every group of settings, by its heading.
GROUPS: Final[Mapping[str, type[SettingsGroup]]] = {
    "Every service": Settings,
    "Collector": CollectorSettings,
    "Processor": ProcessorSettings,
    **{f"Processor, application `{name}`": group for name, group in APPLICATIONS.items()},
    "Finalizer": FinalizerSettings,
    "Serving": ServingSettings,
    "Query": QuerySettings,
    "Dashboard": DashboardSettings,
    "Webhooks": WebhooksSettings,
    "Notifications": NotificationsSettings,
    "Database (python -m deploy.database)": DatabaseSettings,
}
#: Words that count themselves.
_COUNTED: Final = (
    "answers attempts beacons bodies calls connections cores customers endpoints exports failures keys messages offsets outcomes"
    " partitions"
    " questions recordings records requests rows slices spans standbys streams threads uploads views windows"
)
#: A variable's unit is that of the last word in its name that has one.
_UNITS: Final = {
    "ms": "ms",
    "seconds": "s",
    "hours": "hours",
    "days": "days",
    "bytes": "bytes",
    "kbytes": "KiB",
    "bps": "bit/s",
    "share": "fraction",
    "ratio": "times",
    "chars": "characters",
    "depth": "levels",
    "attrs": "fields",
    "items": "values",
    "members": "values",
    "pending": "messages",
    "waiting": "payloads",
}
_INTRODUCTION: Final = """# Settings

<!-- Written by `python -m deploy.settings_doc` from the settings classes. Do not edit. -->

Every process reads its settings from the environment, once, at its start. A wrong value ends the process with exit code 2 and
a message that names the variable. A variable is refused too if it begins with the service's prefix or with `PLAYHEAD_` and the
service does not know it. Only what images set, what commands of this project use, and what Kubernetes sets for each Service
(`PLAYHEAD_…_SERVICE_HOST`) is passed over.

A variable marked *secret* may instead name a file: append `_FILE` to its name. [security.md](security.md) describes the
settings that make connections safe. *Required* variables have no default.
"""


class Variable(NamedTuple):
    """One row of the page, as text."""

    name: str
    kind: str
    unit: str
    default: str
    bounds: str
    meaning: str


def variables(group: type[SettingsGroup]) -> Iterator[Variable]:
    """The variables that `group` itself adds to those of every service."""
    common = Settings.model_fields if group is not Settings and issubclass(group, Settings) else {}
    for field, info in group.model_fields.items():
        if field not in common:
            yield Variable(
                group.variable(field),
                _kind(info),
                unit_of(field, info),
                _default(info),
                _bounds(info),
                info.description or "",
            )


def unit_of(field: str, info: FieldInfo) -> str:
    """The unit of a number, from the variable's name; empty where the field is no number or counts nothing."""
    if info.annotation not in {int, float, int | None, float | None}:
        return ""
    words = (_UNITS.get(word, word if word in _COUNTED.split() else "") for word in reversed(field.split("_")))
    unit = next(filter(None, words), "")
    rates = {"_per_second": "/s", "_per_minute": "/min", "_per_day": "/day"}
    return unit + next((rate for name, rate in rates.items() if name in field), "")


def page() -> str:
    """The page, as Markdown."""
    parts = [_INTRODUCTION]
    for title, group in GROUPS.items():
        rows = [f"| {' | '.join(_cell(text) for text in variable)} |" for variable in variables(group)]
        head = ["| Variable | Type | Unit | Default | Bounds | Meaning |", "| --- | --- | --- | --- | --- | --- |"]
        parts.append("\n".join([f"## {title}", "", *head, *rows]) + "\n")
    return "\n".join(parts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _options(annotation: Any) -> list[Any]:
    return [one for one in get_args(annotation) if one is not type(None)]


def _kind(info: FieldInfo) -> str:
    annotation = info.annotation
    if "Secret" in str(annotation):
        return "secret"
    if get_origin(annotation) is not Literal and type(None) in get_args(annotation):
        (annotation,) = _options(annotation)
    if get_origin(annotation) is Literal:
        return "one of " + ", ".join(f"`{one}`" for one in get_args(annotation))
    names = {int: "integer", float: "number", str: "text", bool: "`true` or `false`"}
    return names.get(annotation, "path" if "Path" in str(annotation) else "text")  # type: ignore[arg-type]


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "*required*"
    default = info.default
    if default is None or default == "":
        return "none"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _bounds(info: FieldInfo) -> str:
    found = []
    for one in info.metadata:
        for attribute, sign in (("ge", "≥"), ("gt", ">"), ("le", "≤"), ("lt", "<")):
            if (bound := getattr(one, attribute, None)) is not None:
                found.append(f"{sign} {bound}")
        if (length := getattr(one, "min_length", None)) is not None:
            found.append(f"length ≥ {length}")
        if (pattern := getattr(one, "pattern", None)) is not None:
            found.append(f"`{pattern}`")
    return ", ".join(found)


def main(arguments: list[str]) -> int:
    """Writes the page, or compares it."""
    if "--check" in arguments:
        return 0 if PAGE.read_text(encoding="utf-8") == page() else 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
