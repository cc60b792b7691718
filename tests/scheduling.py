"""Which tests run one after another in a worker, and which begin first.

A worker takes a group at a time. A group is a file, so that what a file shares is started once. The files that share the Spark
session are one group, and so are those of each folder that shares a dashboard: a second session, or another dashboard and browser,
costs more than most of them. The tests of `_APART` share nothing and take minutes each, so each is a group. The longest begin
first: one that begins last would keep one worker busy while the other has nothing left.
"""

from typing import Final

from xdist.scheduler import LoadFileScheduling

_INTEGRATION: Final = "tests/integration/"
#: Files that use the fixture `spark`. A test holds the list complete.
SHARING_SPARK: Final = (
    "test_restating.py",
    "test_warehouse.py",
    "test_rows.py",
    "test_finalizer_transforms.py",
    "test_cardinality.py",
    "test_hot_sums.py",
    "test_finalizer_identity.py",
    "test_finalizer_refusals.py",
    "test_hanging_batch.py",
    "test_one_owner.py",
    "test_query_warehouse.py",
    "test_deletions_steps.py",
    "test_customer_retention.py",
    "test_growing_followers.py",
)
PAGE: Final = "page"
#: Folders whose files share a dashboard and a browser; they run in the order of their names.
SHARING_A_DASHBOARD: Final = (PAGE, "dashboard")
_APART: Final = ("test_finalizer.py",)
#: By the CPU time that they take, the largest first. All other files follow in their own order.
LONGEST: Final = (
    *SHARING_SPARK,
    *_APART,
    "test_demo.py",
    "test_deletions_customer.py",
    "test_security.py",
    "test_observe.py",
    "test_second_cluster.py",
    "test_players.py",
    "test_query_sources.py",
    PAGE,
)


def rank(nodeid: str) -> int:
    """Where a test stands in the run: tests of equal rank keep their order."""
    name = _integration_file(nodeid).split("/")[0]
    return LONGEST.index(name) if name in LONGEST else len(LONGEST)


def group_of(nodeid: str) -> str:
    """What a test runs together with."""
    name = _integration_file(nodeid)
    folder = name.split("/")[0]
    if name in SHARING_SPARK:
        return "spark"
    if folder in SHARING_A_DASHBOARD:
        return folder
    return nodeid if name in _APART else nodeid.split("::", 1)[0]


def _integration_file(nodeid: str) -> str:
    return nodeid.split("::", 1)[0].removeprefix(_INTEGRATION)


class ByGroup(LoadFileScheduling):  # type: ignore[misc]
    """Hands out groups instead of files."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
