"""Where a key's questions go, as a table; and what a rebalance leaves known."""

import pytest

from services.processor.engine.routing import Local, Nobody, Owner, Owners, Remote, route
from shared.partitioning import partition_of

KEY = b"acme:view-1"
AT = partition_of(KEY, 8)
ELSEWHERE = (AT + 1) % 8
HERE = "http://pod-0:9103"
ME = Owner("pod-0/0", HERE)
PEER = Owner("pod-1/0", "http://pod-1:9103")
DEAF = Owner("pod-2/0", None)


@pytest.mark.parametrize(
    ("by_partition", "expected"),
    [
        ({}, Nobody()),
        ({ELSEWHERE: ME}, Nobody()),
        ({AT: ME}, Local()),
        ({AT: ME, ELSEWHERE: PEER}, Local()),
        ({AT: PEER, ELSEWHERE: ME}, Remote("http://pod-1:9103")),
        ({AT: DEAF}, Nobody()),
        # Another replica has taken this slot's id.
        ({AT: Owner(ME.slot, PEER.url)}, Remote("http://pod-1:9103")),
    ],
)
def test_a_key_goes_to_the_owner_of_its_partition(by_partition: dict[int, Owner], expected: object) -> None:
    assert route(KEY, Owners(HERE, 8, by_partition)) == expected


def test_a_rebalance_that_names_nobody_leaves_the_last_known_owners() -> None:
    before = Owners(HERE, 8, {0: ME, 1: PEER})
    assert before.renewed({}, is_settled=False).by_partition == {0: ME, 1: PEER}
    assert before.renewed({1: ME}, is_settled=False).by_partition == {0: ME, 1: ME}


def test_a_settled_group_is_believed_to_the_letter() -> None:
    before = Owners(HERE, 8, {0: ME, 1: PEER})
    assert before.renewed({1: ME}, is_settled=True).by_partition == {1: ME}
