"""What slots wrote in their logs, for what only they hold: which commits were refused, what was taken and moved."""

import json
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any


def events(log_file: Path, *names: str) -> list[dict[str, Any]]:
    """The events of these names, oldest first. A line that a kill cut in two is passed over."""
    found = []
    for line in log_file.read_text(errors="replace").splitlines():
        # Cheaper than parsing what is not asked for; a line cut short may be followed by a whole one.
        if not any(name in line for name in names) or "{" not in line:
            continue
        try:
            event = json.loads(line[line.rindex('{"') :] if not line.startswith("{") else line)
        except json.JSONDecodeError:
            continue
        if event.get("event") in names:
            found.append(event)
    return found


def at_seconds(event: dict[str, Any]) -> float:
    """When the event was logged, seconds since 1970."""
    return datetime.fromisoformat(event["timestamp"]).timestamp()


def refused_commits(log_files: list[Path]) -> Counter[str]:
    """Commits that were refused or whose outcome was unclear, by what became of them and Kafka's code."""
    refused: Counter[str] = Counter()
    for log_file in log_files:
        for event in events(log_file, "commit_aborted", "commit_unclear"):
            code = str(event["error"]).partition(":")[0]
            refused[f"{event.get('outcome', 'aborted')}: {code}"] += 1
    return refused


def takeovers(log_files: list[Path]) -> tuple[int, int]:
    """How often a partition was taken, and how many changelog rows were replayed in all."""
    taken = [event for log_file in log_files for event in events(log_file, "partition_taken_over")]
    return len(taken), sum(int(event["replayed_rows"]) for event in taken)


def promotions(log_file: Path) -> int:
    """How often the process of a standby took its slot."""
    return len(events(log_file, "going_active"))


def held(log_file: Path) -> frozenset[int]:
    """The partitions that the process has now: what it was assigned since it started, less what it gave up."""
    partitions: set[int] = set()
    for event in events(log_file, "started", "assigned", "revoked", "lost"):
        if event["event"] == "started":
            partitions.clear()
        elif event["event"] == "assigned":
            partitions |= set(event["partitions"])
        else:
            partitions -= set(event["partitions"])
    return frozenset(partitions)
