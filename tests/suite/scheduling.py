"""Which tests run one after another in a worker, and which begin first.

A worker takes a group at a time. A group is a file, so that what a file shares is started once. The files that share a JVM with
Spark are one group, and so are those of each folder that shares a dashboard: a second JVM, whose code is cold, or another
dashboard and browser, costs more than most of them. The tests of `_APART` share nothing and take minutes each, so each is
a group. The longest begin first: one that begins last would keep one worker busy while the others have nothing left.
"""

from collections.abc import Sequence
from typing import Final

from xdist.scheduler import LoadFileScheduling

#: The paths of the files and folders below begin here.
_INTEGRATION: Final = "tests/integration/"
#: Files whose processes have their Spark in the JVM of the fixture `warm_jvm`, one process after the other. A test holds the list.
#: They come before those of the fixture `spark`, which keeps that JVM.
SHARING_A_JVM: Final = (
    "finalizer/test_finalizer_deaths.py",
    "deletions/test_deletions_customer.py",
    "deletions/test_deletions.py",
    "finalizer/test_finalizer_stream.py",
    "deploy/test_security.py",
)
#: Files that use the fixture `spark`. A test holds the list complete.
SHARING_SPARK: Final = (
    "finalizer/warehouse/test_restating.py",
    "finalizer/warehouse/test_warehouse.py",
    "finalizer/warehouse/test_rows.py",
    "finalizer/warehouse/test_session.py",
    "finalizer/warehouse/test_scan.py",
    "finalizer/warehouse/test_finalizer_transforms.py",
    "finalizer/warehouse/test_cardinality.py",
    "serving/test_hot_sums.py",
    "finalizer/test_finalizer_identity.py",
    "finalizer/test_finalizer_refusals.py",
    "finalizer/test_hanging_batch.py",
    "serving/test_one_owner.py",
    "query/test_query_warehouse.py",
    "deletions/test_deletions_steps.py",
    "deletions/test_customer_retention.py",
    "processor/growing/test_growing_followers.py",
)
#: The group of both: the longest of all, and one chain of work.
_SPARK: Final = "spark"
PAGE: Final = "page"
#: Folders whose files share a dashboard and a browser; they run in the order of their names.
SHARING_A_DASHBOARD: Final = (PAGE, "dashboard")
_APART: Final = ("finalizer/test_finalizer.py",)
#: By the time that they take beside others, the longest first. All other files follow as `keys` says.
LONGEST: Final = (
    *SHARING_A_JVM,
    *SHARING_SPARK,
    "deploy/test_demo.py",
    PAGE,
    *_APART,
    "processor/failures/test_processor_failures.py",
    "processor/operators/test_state_commands.py",
    "tests/two_builds/test_two_builds.py",
    "deploy/test_second_cluster.py",
    "query/test_query_sources.py",
    "processor/test_compiled.py",
    "processor/ownership/test_membership.py",
    "processor/failures/test_processor_failures_store.py",
    "processor/failures/test_processor_failures_refused.py",
    "processor/growing/test_growing.py",
    "finalizer/test_object_store.py",
    "applications/test_users.py",
    "processor/failures/test_three_brokers.py",
    "dashboard",
    "serving/test_serving.py",
    "tests/chaos/production/test_production_short.py",
    "processor/failures/test_processor_failures_input.py",
    "players/test_players.py",
    "processor/operators/test_corrections.py",
    "processor/ownership/test_lookups.py",
    "tests/chaos/test_chaos_short.py",
    "processor/ownership/test_standby_stores.py",
    "collector/test_collector_losses.py",
    "applications/test_applications.py",
    "alerts/test_alerts.py",
    "query/test_query_suspects.py",
    "processor/operators/test_redrive.py",
    "processor/ownership/test_standby.py",
    "tests/unit/loadtest/test_locust.py",
    "observability/test_observability.py",
    "tests/oracle/test_oracle.py",
)
_UNIT: Final = "tests/unit/"


def keys(nodeids: Sequence[str]) -> list[tuple[int, float]]:
    """By which tests are sorted: the longest first, then all others.

    Of these, unit tests compute and most others wait. They are spread among each other, so that the cores have both to the end.
    """
    groups = [group_of(one) for one in nodeids]
    ranks = [rank(one) for one in nodeids]
    others = dict.fromkeys(group for group, rank in zip(groups, ranks, strict=True) if rank == len(LONGEST))
    places: dict[str, float] = {}
    for is_unit in (False, True):
        kind = [one for one in others if one.startswith(_UNIT) == is_unit]
        places |= {one: place / len(kind) for place, one in enumerate(kind)}
    return [(rank, places.get(group, 0)) for rank, group in zip(ranks, groups, strict=True)]


def rank(nodeid: str) -> int:
    """The place of a test among the longest; that of all others is behind them."""
    name = _integration_file(nodeid)
    folder = name.split("/")[0]
    listed = folder if folder in SHARING_A_DASHBOARD else name
    return LONGEST.index(listed) if listed in LONGEST else len(LONGEST)


def group_of(nodeid: str) -> str:
    """What a test runs together with."""
    name = _integration_file(nodeid)
    folder = name.split("/")[0]
    if name in (*SHARING_A_JVM, *SHARING_SPARK):
        return _SPARK
    if folder in SHARING_A_DASHBOARD:
        return folder
    return nodeid if name in _APART else nodeid.split("::", 1)[0]


def is_of_longest(nodeid: str) -> bool:
    """Whether a test is of the group that ends last."""
    return group_of(nodeid) == _SPARK


def _integration_file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0].removeprefix(_INTEGRATION)


class ByGroup(LoadFileScheduling):  # type: ignore[misc]
    """Hands out groups instead of files."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
