"""Pools: the threads of a slot that wait for Kafka and disks, so that the folding thread does not.

A commit, flush or takeover that hangs holds up its own partition alone: the others get further threads.
"""

from concurrent.futures import Executor
from typing import Final, NamedTuple, Self

from services.processor.runtime.objects.media import MediaPool
from services.processor.runtime.plan import Plan
from services.rim.process.elastic import ElasticPool

#: Takeovers have threads of their own: they may take long, and no commit may queue behind them.
COMMIT_THREADS: Final = 16
TAKEOVER_THREADS: Final = 16
#: Of each kind, where as many hang.
THREADS_MAX: Final = 256
#: A takeover that runs for so long hangs, or the machine is busy. Many compute at a time where a slot gets hundreds of partitions:
#: with a thread each they would compete with the folding thread, which has to poll.
TAKEOVER_PATIENCE_SECONDS: Final = 2.0


class Pools(NamedTuple):
    """Shared by all partitions of a slot."""

    commits: Executor
    takeovers: Executor
    #: None where the application makes no media requests.
    media: MediaPool | None = None

    @classmethod
    def start(cls, plan: Plan) -> Self:
        """The pools of a slot; threads start when they are first used."""
        media = None
        if plan.objects is not None and plan.application.media is not None:
            settings = plan.settings
            media = MediaPool(
                settings,
                plan.application.name,
                plan.objects,
                settings.media_threads,
                plan.crash_points,
                refused_seconds=settings.object_refused_ms / 1000,
            )
        return cls(
            commits=ElasticPool("commit", COMMIT_THREADS, most=THREADS_MAX),
            takeovers=ElasticPool(
                "takeover", TAKEOVER_THREADS, most=THREADS_MAX, patience_seconds=TAKEOVER_PATIENCE_SECONDS
            ),
            media=media,
        )

    def close(self) -> None:
        """Ends the threads. Every partition has been released: what still waits only closes stores."""
        self.commits.shutdown(wait=False, cancel_futures=True)
        self.takeovers.shutdown(wait=False)
        if self.media is not None:
            self.media.close()
