"""The demo command as people run it: everything real, and nothing left running however it ends."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from deploy.demo import addresses
from deploy.demo.applications import catalogue
from deploy.demo.comparing.asking import VIEWS_MIN
from deploy.demo.run import EXIT_DIED, EXIT_DIFFERS, EXIT_INTERRUPTED, EXIT_OK
from deploy.local.paths import ROOT
from deploy.local.process import Running, wait_until
from loadtest.incident import incident_of
from shared.topics import PROFILES, VIEWS
from tests.documents import Block, run_by
from tests.integration.deploy.demo_page import holding
from tests.suite import prefork

pytestmark = [pytest.mark.integration, pytest.mark.timeout(900)]

_READY_SECONDS_MAX = 300
_END_SECONDS_MAX = 300
_LAND_SECONDS_MAX = 600
_PARTS_SECONDS_MAX = 600
#: How long players play.
_SECONDS = 30


@pytest.mark.timeout(1500)
def test_every_view_of_a_run_ends_up_as_its_player_knows_it(tmp_path: Path) -> None:
    # As many views as the incident can be told from chance with.
    words = f"--views {VIEWS_MIN} --seconds {_SECONDS} --seed 11 --apps all --keep --live 2"
    with _demo(tmp_path, *words.split()) as demo:

        def says(text: str) -> bool:
            assert demo.poll() is None, _output(tmp_path)
            return text in _output(tmp_path)

        wait_until(lambda: says("The incident: "), _LAND_SECONDS_MAX, "the demo has compared")
        assert says("everything is as the players know it"), _output(tmp_path)
        # However slow the browser is, nobody plays meanwhile: the services go on, and the demo begins nothing more.
        demo.send_signal(signal.SIGSTOP)
        try:
            holding.hold(tmp_path / "demo", incident_of(_SECONDS))
        finally:
            demo.send_signal(signal.SIGCONT)
        wait_until(lambda: says("Ctrl-C ends everything."), _PARTS_SECONDS_MAX, "all parts are shown, and it stays up")
        _run_documents(tmp_path)
        demo.send_signal(signal.SIGTERM)
        code = demo.wait(_END_SECONDS_MAX)

    output = _output(tmp_path)
    assert code == EXIT_OK, output
    assert "DIFFERS" not in output
    assert re.search(r"^first suspect of Now .* ok *$", output, re.MULTILINE), output
    assert "the page shows its first numbers" in output
    assert "all applications report what was sent" in output
    for part in catalogue.ALL:
        assert re.search(rf"^{part.application}: .* ok *$", output, re.MULTILINE), part.application
    assert _still_running(_pids_named(output)) == []


def test_a_load_test_reports_a_lost_view_and_a_row_that_is_doubled_after_all_was_right(tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    load = ("--shape", "soak", "--viewers", "6", "--seconds", "20", "--report", str(report))
    with _demo(tmp_path, *load, module="deploy.demo.load") as demo:
        wait_until(lambda: "whether it stays so" in _output(tmp_path), _LAND_SECONDS_MAX, "no line differs any more")
        # However slow this test is, the run looks again only after these.
        demo.send_signal(signal.SIGSTOP)
        try:
            _double_a_row(_output(tmp_path))
            _lose_a_view(tmp_path / "demo" / "truth.json", "lost")
        finally:
            demo.send_signal(signal.SIGCONT)
        code = demo.wait(_END_SECONDS_MAX)

    output = _output(tmp_path)
    assert code == EXIT_DIFFERS, output
    differs = re.findall(r"(.*?) +[\d,]+ +[\d,]+ +DIFFERS", output)
    assert [name for name in differs if not name.startswith("lost: ")] == [
        "records in topic views",
        "doubled records in topic views",
        "views missing in the warehouse",
    ]
    page = report.read_text()
    assert "THERE ARE DIFFERENCES" in page
    assert "<li>missing: lost:" in page
    assert "/ (mux-embed)" in page
    for place in (str(ROOT), str(tmp_path), os.uname().nodename):
        assert place not in page


def test_a_process_that_dies_ends_the_demo_by_name_and_with_it_everything_else(tmp_path: Path) -> None:
    with _demo(tmp_path, "--views", "10") as demo:
        pids = _pids_once_playing(demo, tmp_path)
        os.kill(pids["processor-1"], signal.SIGKILL)
        code = demo.wait(_END_SECONDS_MAX)

    output = _output(tmp_path)
    assert code == EXIT_DIED, output
    assert "processor-1 ended with exit code -9" in output
    assert _still_running(pids.values()) == []


def test_a_demo_refuses_a_second_one_in_its_folder_and_stops_everything_cleanly_at_a_stop_signal(
    tmp_path: Path,
) -> None:
    with _demo(tmp_path, "--views", "10") as demo:
        wait_until((tmp_path / "demo" / "processes.json").exists, _READY_SECONDS_MAX, "the demo has begun")
        second = _started(tmp_path, output="second").wait(_READY_SECONDS_MAX)
        pids = _pids_once_playing(demo, tmp_path)
        demo.send_signal(signal.SIGTERM)
        code = demo.wait(_END_SECONDS_MAX)

    assert second == EXIT_DIED
    assert "is running already" in (tmp_path / "second").read_text()
    assert code == EXIT_INTERRUPTED, _output(tmp_path)
    assert "stopping" in _output(tmp_path)
    assert _still_running(pids.values()) == []


def test_a_folder_that_is_no_demos_is_not_emptied(tmp_path: Path) -> None:
    precious = tmp_path / "demo" / "precious"
    precious.parent.mkdir()
    precious.write_text("keep me")

    code = _started(tmp_path).wait(_READY_SECONDS_MAX)

    assert code != EXIT_OK
    assert "holds something else" in _output(tmp_path)
    assert precious.read_text() == "keep me"


def _run_documents(tmp_path: Path) -> None:
    """Every command of the documents that needs a running demo, in the documents' order."""
    of_documents = groupby(run_by(__file__), key=lambda block: block.document)
    scripts = {document: "\n".join(_as_shell(block) for block in found) for document, found in of_documents}
    assert {"docs/tutorial.md", "docs/troubleshooting.md", "docs/users.md"} <= set(scripts)
    environment = tmp_path / "demo" / addresses.FILE_NAME
    for document, script in scripts.items():
        whole = f". {environment}\n{script.replace(f'.local/demo/{addresses.FILE_NAME}', str(environment))}"
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", whole],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert ran.returncode == 0, f"{document}:\n{ran.stdout}\n{ran.stderr}"
        if document == "docs/tutorial.md":
            assert re.search(r"acme +│ tutorial +│ curl +│ +32000 │ +24000 │", ran.stdout), ran.stdout


def _as_shell(block: Block) -> str:
    """A block as a part of a script; Python is run by the interpreter of this test."""
    if block.language == "python":
        return f"{sys.executable} - <<'END_OF_BLOCK'\n{block.text}END_OF_BLOCK"
    return block.text.replace(".venv/bin/python", sys.executable)


def _double_a_row(output: str) -> None:
    named = re.search(r"Kafka runs on (\S+) ", output)
    assert named is not None
    bootstrap = {"bootstrap.servers": named[1]}
    consumer = Consumer(bootstrap | {"group.id": "test-demo", "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(VIEWS.name, at, 0) for at in range(VIEWS.partitions(PROFILES["laptop"]))])
    (row,) = consumer.consume(1, timeout=_END_SECONDS_MAX)
    consumer.close()
    producer = Producer(bootstrap)
    producer.produce(VIEWS.name, row.value(), key=row.key(), partition=row.partition() or 0)
    assert producer.flush(_END_SECONDS_MAX) == 0


def _lose_a_view(truth: Path, customer: str) -> None:
    """From now on the players know of a view more, as if its beacons had been answered 200 and were nowhere."""
    content = json.loads(truth.read_text())
    content["views"].append(content["views"][0] | {"customer_id": customer})
    truth.write_text(json.dumps(content))


def _started(tmp_path: Path, *more: str, module: str = "deploy.demo", output: str = "output") -> Running:
    """A command of the demo in its folder, and its output in a file beside that."""
    program = "tests.integration.deploy.demo_command"
    argv = [sys.executable, "-m", program, module, "--folder", str(tmp_path / "demo"), *more]
    with (tmp_path / output).open("wb") as file:
        return prefork.start(argv, file.fileno(), os.environ, ROOT)


@contextmanager
def _demo(tmp_path: Path, *more: str, module: str = "deploy.demo") -> Iterator[Running]:
    demo = _started(tmp_path, *more, module=module)
    try:
        yield demo
    finally:
        if demo.poll() is None:
            # The test failed: let the demo end what it started.
            demo.send_signal(signal.SIGTERM)
            demo.wait(_END_SECONDS_MAX)


def _pids_once_playing(demo: Running, tmp_path: Path) -> dict[str, int]:
    def playing() -> bool:
        assert demo.poll() is None, _output(tmp_path)
        return "views begin" in _output(tmp_path) and "players" in _recorded(tmp_path)

    wait_until(playing, _READY_SECONDS_MAX, "players play")
    return _recorded(tmp_path)


def _recorded(tmp_path: Path) -> dict[str, int]:
    entries = json.loads((tmp_path / "demo" / "processes.json").read_text())
    return {entry["name"]: entry["pid"] for entry in entries}


def _output(tmp_path: Path) -> str:
    return (tmp_path / "output").read_text()


def _pids_named(output: str) -> list[int]:
    return [int(line.rpartition("(pid ")[2].rstrip(")")) for line in output.splitlines() if "(pid " in line]


def _still_running(pids: Iterable[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]
