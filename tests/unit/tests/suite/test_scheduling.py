"""What runs together in a worker of `make test`, and in which order."""

import re
from pathlib import Path

import pytest

from deploy.local.paths import ROOT
from tests.suite import scheduling

INTEGRATION = Path(__file__).parents[3] / "integration"


def nodeid(file: str, test: str = "test_one") -> str:
    return f"tests/integration/{file}::{test}"


def in_order(nodeids: list[str]) -> list[str]:
    return [one for _, one in sorted(zip(scheduling.keys(nodeids), nodeids, strict=True), key=lambda pair: pair[0])]


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
        "tests/unit/tests/suite/test_whole.py::test_one",
    ]
    assert [scheduling.group_of(one) for one in files] == [
        "tests/integration/deploy/test_broker.py",
        "tests/integration/deploy/test_broker.py",
        "tests/unit/tests/suite/test_whole.py",
    ]
    for folder in scheduling.SHARING_A_DASHBOARD:
        files = [path.relative_to(INTEGRATION) for path in (INTEGRATION / folder).rglob("test_*.py")]
        assert len(files) > 1
        assert {scheduling.group_of(nodeid(str(file))) for file in files} == {folder}
    first, second = nodeid("finalizer/test_finalizer.py"), nodeid("finalizer/test_finalizer.py", "test_two")
    assert scheduling.group_of(first) != scheduling.group_of(second)


def test_the_longest_begin_first_and_exist() -> None:
    assert all((INTEGRATION / name).exists() or (ROOT / name).is_file() for name in scheduling.LONGEST)
    page = [nodeid("page/now/test_now.py"), nodeid("page/alerts/test_alerts.py")]
    given = [nodeid("deploy/test_broker.py"), *page, nodeid("finalizer/warehouse/test_warehouse.py")]
    assert in_order(given) == [given[3], *page, given[0]]


def test_unit_tests_are_spread_among_the_others() -> None:
    others = [nodeid(f"collector/test_{name}.py", test) for name in "abc" for test in ("test_one", "test_two")]
    units = [f"tests/unit/test_{name}.py::test_one" for name in "abcdef"]
    files = [one.split("::")[0].split("/")[-1] for one in in_order([*others, *units])]
    assert files == [
        *("test_a.py", "test_a.py", "test_a.py", "test_b.py"),
        *("test_b.py", "test_b.py", "test_c.py", "test_d.py"),
        *("test_c.py", "test_c.py", "test_e.py", "test_f.py"),
    ]
