"""What runs together in a worker of `make test`, and in which order."""

import re
from pathlib import Path

import pytest

from tests import scheduling

INTEGRATION = Path(__file__).parents[1] / "integration"


def nodeid(file: str, test: str = "test_one") -> str:
    return f"tests/integration/{file}::{test}"


@pytest.mark.parametrize(
    ("fixtures", "files"),
    [
        (r"spark: SparkSession|warehouse: Warehouse", scheduling.SHARING_SPARK),
        (r"warm_jvm: WarmJvm", scheduling.SHARING_A_JVM),
    ],
)
def test_every_file_that_uses_the_shared_jvm_is_in_its_group(fixtures: str, files: tuple[str, ...]) -> None:
    uses = {
        str(path.relative_to(INTEGRATION))
        for path in INTEGRATION.rglob("test_*.py")
        if re.search(rf"\b({fixtures})\b", path.read_text())
    }
    assert uses == set(files)
    assert {scheduling.group_of(nodeid(name)) for name in uses} == {"spark"}


def test_processes_have_the_jvm_before_the_session_that_keeps_it() -> None:
    last = max(scheduling.rank(nodeid(name)) for name in scheduling.SHARING_A_JVM)
    assert last < min(scheduling.rank(nodeid(name)) for name in scheduling.SHARING_SPARK)


def test_a_group_is_a_file_unless_its_tests_are_apart() -> None:
    files = [
        nodeid("deploy/test_broker.py"),
        nodeid("deploy/test_broker.py", "test_two[::1]"),
        "tests/unit/test_whole.py::test_one",
    ]
    assert [scheduling.group_of(one) for one in files] == [
        "tests/integration/deploy/test_broker.py",
        "tests/integration/deploy/test_broker.py",
        "tests/unit/test_whole.py",
    ]
    for folder in scheduling.SHARING_A_DASHBOARD:
        files = sorted(path.name for path in (INTEGRATION / folder).glob("test_*.py"))
        assert len(files) > 1
        assert {scheduling.group_of(nodeid(f"{folder}/{name}")) for name in files} == {folder}
    first, second = nodeid("finalizer/test_finalizer.py"), nodeid("finalizer/test_finalizer.py", "test_two")
    assert scheduling.group_of(first) != scheduling.group_of(second)


def test_the_longest_begin_first_and_exist() -> None:
    assert all((INTEGRATION / name).exists() for name in scheduling.LONGEST)
    given = [
        nodeid("deploy/test_broker.py"),
        "tests/unit/test_rows.py::test_one",
        nodeid("finalizer/warehouse/test_warehouse.py"),
    ]
    given.append(nodeid("page/test_now.py"))
    assert sorted(given, key=scheduling.rank) == [given[2], given[3], given[0], given[1]]
