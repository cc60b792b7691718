"""Writes the catalogue of metrics into docs/observability.md: `python -m deploy.observability.catalogue`."""

from collections.abc import Iterator
from typing import Final, get_args

from deploy.local.paths import ROOT
from shared.metrics import Metric, ServiceName, declared, of_service

DOCUMENT: Final = ROOT / "docs/observability.md"
BEGIN: Final = "<!-- catalogue -->\n"
END: Final = "<!-- end of catalogue -->"
HEAD: Final = "| metric | kind | labels | meaning |\n|---|---|---|---|"


def catalogue() -> str:
    """Every metric, of all services first, then by service: Markdown."""
    of_one = {name: [metric for metric in of_service(name) if _names(metric, name)] for name in get_args(ServiceName)}
    shared = [metric for metric in declared() if not any(metric in metrics for metrics in of_one.values())]
    return "\n\n".join(_section(name, metrics) for name, metrics in {"every service": shared, **of_one}.items())


def _names(metric: Metric, service: str) -> bool:
    return f"_{service}_" in metric.name


def _section(name: str, metrics: list[Metric]) -> str:
    return "\n".join((f"### {name[0].upper()}{name[1:]}", "", HEAD, *_rows(metrics)))


def _rows(metrics: list[Metric]) -> Iterator[str]:
    for metric in metrics:
        labels = ", ".join(f"`{label}`" for label in metric.labels)
        yield f"| `{metric.name}` | {metric.kind} | {labels} | {metric.meaning} |"


def written(text: str) -> str:
    """The document with the catalogue of now between its marks."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + catalogue() + "\n" + END + rest.split(END)[1]


if __name__ == "__main__":
    DOCUMENT.write_text(written(DOCUMENT.read_text()))
