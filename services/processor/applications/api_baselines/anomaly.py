"""Anomalies of one endpoint: opens, continues and closes one per measure, window by window. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from shared.schemas.apis.anomaly import EndReason, Evidence, Measure


class Anomaly(msgspec.Struct, array_like=True):
    """One that is open. Times in ms since 1970; windows are those that were not as usual."""

    opened_ms: int
    last_ms: int
    latest: Evidence
    worst: Evidence
    windows: int = 1
    revision: int = 1
    #: Windows as usual since the last that was not.
    usual_windows: int = 0


class AnomalyChange(NamedTuple):
    """One revision to publish."""

    measure: Measure
    anomaly: Anomaly
    #: Why it is closed; None for one that goes on.
    end_reason: EndReason | None


def follow(
    anomalies: dict[Measure, Anomaly],
    found: Mapping[Measure, Evidence],
    *,
    window_ms: int,
    start_ms: int,
    closing_windows: int,
    anomaly_ms_max: int,
) -> list[AnomalyChange]:
    """Takes the next window. Returns the revisions to publish; `anomalies` then holds those that continue.

    `closing_windows` usual windows in a row close one. One of `anomaly_ms_max` closes them all: that is the new usual.
    """
    end_ms = start_ms + window_ms
    changes = []
    for measure, evidence in found.items():
        anomaly = anomalies.get(measure)
        if anomaly is None:
            anomaly = anomalies[measure] = Anomaly(start_ms, end_ms, evidence, evidence)
        else:
            anomaly.last_ms, anomaly.latest, anomaly.usual_windows = end_ms, evidence, 0
            anomaly.windows += 1
            anomaly.revision += 1
            if evidence.probability < anomaly.worst.probability:
                anomaly.worst = evidence
        changes.append(AnomalyChange(measure, anomaly, None))
    for measure in [one for one in anomalies if one not in found]:
        anomalies[measure].usual_windows += 1
        if anomalies[measure].usual_windows >= closing_windows:
            changes.append(_closed(anomalies, measure, "usual_again"))
    if any(end_ms - anomaly.opened_ms >= anomaly_ms_max for anomaly in anomalies.values()):
        # Only their ends are published: one revision per window.
        changes = [one for one in changes if one.end_reason is not None] + close_all(anomalies, "new_usual")
    return changes


def close_all(anomalies: dict[Measure, Anomaly], reason: EndReason) -> list[AnomalyChange]:
    """Closes what is open."""
    return [_closed(anomalies, measure, reason) for measure in list(anomalies)]


def _closed(anomalies: dict[Measure, Anomaly], measure: Measure, reason: EndReason) -> AnomalyChange:
    anomaly = anomalies.pop(measure)
    anomaly.revision += 1
    return AnomalyChange(measure, anomaly, reason)
