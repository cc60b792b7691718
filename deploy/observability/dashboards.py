"""Grafana's dashboards, of the panels in `panels.py` and `experience.py`, one JSON file each.

`python -m deploy.observability.dashboards FOLDER` writes them. Built with Grafana's own Foundation SDK, so a field that its schema
does not have is a type error here.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from grafana_foundation_sdk.builders import dashboard as dashboards
from grafana_foundation_sdk.builders import heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.runtime import UnknownDataquery
from grafana_foundation_sdk.models.dashboard import Dashboard, DataSourceRef, DynamicConfigValue, VariableRefresh
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

from deploy.observability.experience import CUSTOMERS, PANELS, SqlPanel
from deploy.observability.panels import ALL, Panel

#: The data source that deploy/observability/grafana provisions.
SOURCE: Final = DataSourceRef(type_val="prometheus", uid="playhead-prometheus")
#: The serving copy, provisioned there too.
SERVING: Final = DataSourceRef(type_val="grafana-postgresql-datasource", uid="playhead-serving")
#: Of what viewers experience, from `SERVING`; all others are of Prometheus.
EXPERIENCE: Final = "playhead-experience"
_WIDTH: Final = 12
_HEIGHT: Final = 8

_Built = timeseries.Panel | heatmap.Panel | stat.Panel | table.Panel
_KINDS: Final[dict[str, Callable[[], _Built]]] = {
    "lines": timeseries.Panel,
    "heat": heatmap.Panel,
    "number": stat.Panel,
    "table": table.Panel,
}


def build(name: str) -> Dashboard:
    """The dashboard of that name."""
    title, panels = ALL[name]
    board = dashboards.Dashboard(title).uid(name).tags(["playhead"]).refresh("15s").time("now-1h", "now").readonly()
    for panel in panels:
        board.with_panel(_panel(panel))
    return board.build()


def build_experience() -> Dashboard:
    """The dashboard of what viewers experience, by customers that are chosen on it."""
    chosen = dashboards.QueryVariable("customer").label("Customer").datasource(SERVING).query(CUSTOMERS)
    chosen.multi(True).include_all(True).refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
    board = dashboards.Dashboard("Playhead: experience of viewers").uid(EXPERIENCE).tags(["playhead"])
    board.refresh("1m").time("now-24h", "now").readonly().with_variable(chosen)
    for panel in PANELS:
        board.with_panel(_sql_panel(panel))
    return board.build()


def to_json(board: Dashboard) -> str:
    """What Grafana loads."""
    return json.dumps(board, cls=JSONEncoder, indent=1, sort_keys=True) + "\n"


def _panel(panel: Panel) -> _Built:
    built = _KINDS[panel.kind]()
    built.title(panel.title).unit(panel.unit).datasource(SOURCE).span(_WIDTH).height(_HEIGHT)
    if panel.meaning:
        built.description(panel.meaning)
    for number, (query, legend) in enumerate(panel.queries):
        target = prometheus.Dataquery().expr(query).legend_format(legend).ref_id(chr(ord("A") + number))
        built.with_target(target.datasource(SOURCE).format(PromQueryFormat.TIME_SERIES))
    return built


class _Sql(Builder[UnknownDataquery]):
    """A query of Grafana's Postgres data source, which the SDK has no builder for."""

    def __init__(self, panel: SqlPanel) -> None:
        self._panel = panel

    def build(self) -> UnknownDataquery:
        form = "time_series" if self._panel.kind == "lines" else "table"
        return UnknownDataquery(
            {"datasource": SERVING, "editorMode": "code", "format": form, "rawQuery": True, "rawSql": self._panel.sql}
            | {"refId": "A"}
        )


def _sql_panel(panel: SqlPanel) -> _Built:
    built = _KINDS[panel.kind]()
    built.title(panel.title).unit(panel.unit).datasource(SERVING).span(_WIDTH).height(_HEIGHT)
    if panel.meaning:
        built.description(panel.meaning)
    if isinstance(built, table.Panel):
        built.override_by_regexp("fraction$", [DynamicConfigValue(id_val="unit", value="percentunit")])
    return built.with_target(_Sql(panel))


def main(arguments: Sequence[str]) -> int:
    """Writes them all."""
    parser = argparse.ArgumentParser(prog="python -m deploy.observability.dashboards", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args(arguments).folder
    folder.mkdir(parents=True, exist_ok=True)
    for name in ALL:
        (folder / f"{name}.json").write_text(to_json(build(name)))
    (folder / f"{EXPERIENCE}.json").write_text(to_json(build_experience()))
    print(f"{len(ALL) + 1} dashboards in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
