"""What is compiled, and why.

A module is compiled where it is a cost of every record and gives the same bytes. What cannot be compiled:

- modules with classes of msgspec, pydantic or `NamedTuple`: mypyc leaves out their options and the types of their fields, so that
  structs would be stored in another form. Such classes stand in modules of their own;
- `applications/*/app.py`: what a process starts with is what tests replace.
"""

from collections.abc import Mapping
from typing import Final

_INTAKE: Final = "services.collector.intake"
_ADMISSION: Final = "services.collector.admission"
_ENGINE: Final = "services.processor.engine"
_VIEWS: Final = "services.processor.applications.video_views"

#: The module's name, and its reason.
MODULES: Final[Mapping[str, str]] = {
    f"{_ADMISSION}.admission": "what each request may take",
    f"{_ADMISSION}.held": "the room that each request takes",
    f"{_ADMISSION}.known_views": "whether a request's views are new",
    f"{_ADMISSION}.rates": "the rates of each request's address and customer",
    f"{_INTAKE}.body": "each body, unpacked",
    f"{_INTAKE}.json_format": "each body's size in values",
    f"{_INTAKE}.mux.mux": "each event of a Mux client becomes a beacon",
    f"{_INTAKE}.mux.names": "each name of a Mux client's event",
    f"{_INTAKE}.mux.texts": "the texts of each event of a Mux client that writes numbers so",
    f"{_INTAKE}.values": "each value of a beacon",
    "services.collector.received.counting": "each request is counted",
    "services.collector.received.releases": "the release of each request's views",
    f"{_ENGINE}.application.bound": "each get and put of an application",
    f"{_ENGINE}.core.context": "each output",
    f"{_ENGINE}.core.folding": "the loop over records",
    f"{_ENGINE}.core.position": "asked with each record",
    f"{_ENGINE}.state.byte_layers": "each row that is cut, committed and flushed",
    f"{_ENGINE}.state.cache": "each row that is read",
    f"{_ENGINE}.state.layers": "each get and put of a row, and the encoding of changed rows",
    f"{_ENGINE}.state.rows": "each row as bytes",
    f"{_ENGINE}.state.timers": "each deadline of a row",
    f"{_VIEWS}.beacons.cmcd": "each beacon of a CMCD client becomes a step",
    f"{_VIEWS}.beacons.mux": "each beacon of a Mux client becomes a step",
    f"{_VIEWS}.beacons.native_epas": "each beacon of other clients becomes a step",
    f"{_VIEWS}.beacons.sources": "each beacon becomes a step",
    f"{_VIEWS}.beacons.values": "each value of a beacon",
    f"{_VIEWS}.folding": "each beacon is folded",
    f"{_VIEWS}.live.buckets": "each beacon is counted into its customer's bucket",
    f"{_VIEWS}.live.cohorts": "the cohort of each view whose figures change",
    f"{_VIEWS}.live.gauges": "each beacon moves its customer's gauges",
    f"{_VIEWS}.outputs": "each row of a view that is produced",
    f"{_VIEWS}.plays.place": "each beacon of a session finds its play",
    f"{_VIEWS}.plays.rearrange": "a session's plays where a beacon shows another arrangement",
    f"{_VIEWS}.row.row": "each row of a view",
    f"{_VIEWS}.view.dimensions": "each beacon that says what is played",
    f"{_VIEWS}.view.growth": "each beacon that may make its view larger",
    f"{_VIEWS}.view.finish": "when each changed view is due",
    f"{_VIEWS}.view.folded": "each step is folded in its order",
    f"{_VIEWS}.view.progress.fold_step": "each step is folded",
    f"{_VIEWS}.view.progress.passing": "the time that passes with each step",
    f"{_VIEWS}.view.progress.states": "the state after each step",
    f"{_VIEWS}.view.progress.timeline": "each event of a view",
    f"{_VIEWS}.view.timing.clock": "what each step adds to what is known of its clock",
    f"{_VIEWS}.view.timing.delay": "what the delay of each step shows",
    f"{_VIEWS}.view.timing.elapsed": "whether each step's time depends on its copies",
    "shared.client_values": "each number of a beacon",
    "shared.requests.reading": "each request of a player",
}
