"""What the page computes: node runs the tests of `static/core`."""

import subprocess
from pathlib import Path

SECONDS_MAX = 60


def test_the_page_computes_what_its_own_tests_say() -> None:
    run = subprocess.run(
        ["node", "--test", "--test-reporter=tap", str(Path(__file__).parent / "core.test.mjs")],
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "# fail 0" in run.stdout
    assert "# tests 0" not in run.stdout
