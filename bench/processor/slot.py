"""One slot of Playhead for the benchmarks: `python -m bench.processor.slot FOLD NAME BOOTSTRAP STATE_DIR COMMIT_MS COMMITS_FILE`.

Starts the same parts as `services.processor`, with its defaults: FOLD is `full` (the application `video_views`) or `reduced`. The
times of all commits go to COMMITS_FILE at the end, ms from the cut to the commit. `--slot`, `--replica` and `--standbys` are as the
settings of `services.processor`. PROCESSOR_COMPILED_DIR chooses the build, as there.
"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import structlog

from services.rim.process import compiled

# Before the fold is imported.
BUILD = compiled.choose("processor", os.environ)

from bench.processor import reduced  # noqa: E402
from bench.processor.systems import FINISH_CLEAN_MS  # noqa: E402
from services.processor.applications.video_views import app as video_views  # noqa: E402
from services.processor.applications.video_views.view.finish_rules import FinishRules  # noqa: E402
from services.processor.engine.application.application import Application  # noqa: E402
from services.processor.program import SWITCH_SECONDS  # noqa: E402
from services.processor.runtime.plan import Plan  # noqa: E402
from services.processor.runtime.slot.replica import Replica  # noqa: E402
from services.processor.runtime.standby.roles import RoleTimeouts  # noqa: E402
from services.processor.runtime.telemetry.counts import Counts  # noqa: E402
from services.processor.settings import ProcessorSettings  # noqa: E402
from services.rim.process import garbage  # noqa: E402
from services.rim.process.stopping import stop_on_signals  # noqa: E402
from services.rim.telemetry import logs  # noqa: E402


def application(fold: str, name: str) -> Application:
    """What the slot runs."""
    return (
        video_views.application(FinishRules(clean_ms=FINISH_CLEAN_MS)) if fold == "full" else reduced.application(name)
    )


def main() -> int:
    """Works until SIGTERM."""
    parser = argparse.ArgumentParser()
    for word in ("fold", "name", "bootstrap", "state_dir", "commit_ms", "commits_file"):
        parser.add_argument(word)
    parser.add_argument("--slot", default="bench/0")
    parser.add_argument("--replica", type=int, default=0)
    parser.add_argument("--standbys", type=int, default=0)
    given = parser.parse_args()
    settings = ProcessorSettings(
        kafka_bootstrap=given.bootstrap,
        slot=given.slot,
        state_dir=Path(given.state_dir),
        replica=given.replica,
        standbys=given.standbys,
        commit_interval_ms=int(given.commit_ms),
    )
    logs.configure("processor", settings)
    stop = stop_on_signals()
    commits: list[float] = []
    counted: Any = Counts.committed

    def committed(of_partition: Counts, checkpoint: Any, seconds: float) -> None:
        commits.append(seconds * 1000)
        counted(of_partition, checkpoint, seconds)

    Counts.committed = committed  # type: ignore[method-assign, assignment]
    plan = Plan(settings, application(given.fold, given.name))
    replica = Replica(plan, RoleTimeouts(), lambda: None)
    garbage.look_seldom(garbage.FOLD_OBJECTS_MAX)
    sys.setswitchinterval(SWITCH_SECONDS)
    structlog.get_logger(__name__).info("started", compiled=BUILD.is_compiled, build=BUILD.reason)
    is_clean = replica.run(stop)
    Path(given.commits_file).write_text("\n".join(f"{ms:.3f}" for ms in commits))
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
