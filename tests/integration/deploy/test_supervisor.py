"""The supervisor with small real processes: order, readiness, unexpected ends, deadlines, leftovers of a killed run."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deploy.local.leftovers import Leftovers
from deploy.local.ports import free_port
from deploy.local.process import DeadlinePassed, ProcessDied, wait_until
from deploy.local.supervisor import Service, Supervisor

pytestmark = pytest.mark.integration

#: A Python starts, or ends, within this, on a busy machine too.
SECONDS_MAX = 60.0
#: Ready at once or after `ready_after` probes; writes its name to the journal at its stop signal.
_SERVICE = """
import http.server, os, signal, sys
port, name, journal, ready_after, code = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
probes = 0
class Admin(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global probes
        probes += 1
        self.send_response(200 if probes > ready_after else 503)
        self.end_headers()
    def log_message(self, *_): pass
def stop(*_):
    with open(journal, "a") as file:
        file.write(name + "\\n")
    os._exit(code)
signal.signal(signal.SIGTERM, stop)
http.server.HTTPServer(("127.0.0.1", port), Admin).serve_forever()
"""
_STUBBORN = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); signal.pause()"


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(tmp_path)
    yield made
    made.stop()


def _service(tmp_path: Path, name: str, *, ready_after: int = 0, code: int = 0) -> Service:
    port = free_port()
    arguments = ("-c", _SERVICE, str(port), name, str(tmp_path / "journal"), str(ready_after), str(code))
    return Service(name, arguments, admin_port=port, ready_seconds=SECONDS_MAX)


def test_services_become_ready_and_are_stopped_in_reverse_order(supervisor: Supervisor, tmp_path: Path) -> None:
    for name in ("first", "second", "third"):
        supervisor.start(_service(tmp_path, name, ready_after=2))
    supervisor.wait_ready("first", "second", "third")

    endings = supervisor.stop()

    assert (tmp_path / "journal").read_text().split() == ["third", "second", "first"]
    assert [(ending.name, ending.exit_code, ending.clean) for ending in endings] == [
        ("third", 0, True),
        ("second", 0, True),
        ("first", 0, True),
    ]
    assert supervisor.stop() == []


def test_a_process_that_ends_unexpectedly_is_named_with_its_last_words(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start(_service(tmp_path, "steady"))
    supervisor.wait_ready("steady")
    supervisor.start(Service("broken", ("-c", "print('out of luck'); raise SystemExit(3)")))

    with pytest.raises(ProcessDied, match=r"(?s)broken ended with exit code 3.*out of luck"):
        supervisor.wait(lambda: False, SECONDS_MAX, "never")
    assert [ending.clean for ending in supervisor.stop()] == [False, True]


def test_a_process_that_dies_before_it_is_ready_ends_the_wait(supervisor: Supervisor) -> None:
    supervisor.start(Service("unready", ("-c", "raise SystemExit('no such setting')"), admin_port=free_port()))

    with pytest.raises(ProcessDied, match=r"(?s)unready ended with exit code 1.*no such setting"):
        supervisor.wait_ready("unready")


def test_a_service_that_is_never_ready_is_named_after_its_deadline(supervisor: Supervisor, tmp_path: Path) -> None:
    service = _service(tmp_path, "slow", ready_after=1_000_000)
    supervisor.start(Service("slow", service.arguments, admin_port=service.admin_port, ready_seconds=1))

    with pytest.raises(DeadlinePassed, match=r"slow ready: not within 1 s"):
        supervisor.wait_ready("slow")


def test_a_process_with_an_end_of_its_own_may_end_well_but_not_badly(supervisor: Supervisor) -> None:
    supervisor.start(Service("finishes", ("-c", "pass"), ends=True))
    supervisor.wait(lambda: supervisor.exit_code("finishes") == 0, SECONDS_MAX, "finishes")
    supervisor.check()

    supervisor.start(Service("fails", ("-c", "raise SystemExit(2)"), ends=True))
    with pytest.raises(ProcessDied, match="fails ended with exit code 2"):
        supervisor.wait(lambda: False, SECONDS_MAX, "never")
    assert [(ending.name, ending.clean) for ending in supervisor.stop()] == [("fails", False), ("finishes", True)]


def test_what_does_not_stop_is_killed_and_what_leaves_something_behind_is_reported(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    supervisor.start(Service("stubborn", ("-c", _STUBBORN), stop_seconds=0.5))
    supervisor.wait(lambda: "deaf" in supervisor.log_file("stubborn").read_text(), SECONDS_MAX, "stubborn is deaf")
    supervisor.start(_service(tmp_path, "untidy", code=1))
    supervisor.wait_ready("untidy")

    untidy, stubborn = supervisor.stop()

    assert (untidy.exit_code, untidy.clean) == (1, False)
    assert (stubborn.exit_code, stubborn.clean) == (-signal.SIGKILL, False)


def test_a_killed_process_is_no_surprise_and_can_be_started_again(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start(_service(tmp_path, "victim"))
    supervisor.wait_ready("victim")
    before = supervisor.pid("victim")

    supervisor.kill("victim")
    supervisor.check()
    supervisor.restart("victim")
    supervisor.wait_ready("victim")

    assert supervisor.pid("victim") != before
    assert supervisor.stop_one("victim").clean


def test_settings_in_the_callers_environment_do_not_reach_the_services(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLLECTOR_PORT", "1")
    source = "import os; print(os.environ.get('COLLECTOR_PORT'), os.environ['COLLECTOR_ID'])"
    supervisor.start(Service("shows", ("-c", source), env={"COLLECTOR_ID": "c1"}, ends=True))
    supervisor.wait(lambda: supervisor.exit_code("shows") == 0, SECONDS_MAX, "shows")

    assert supervisor.log_file("shows").read_text() == "None c1\n"


def test_the_next_run_ends_what_a_killed_one_left_and_nothing_else(tmp_path: Path) -> None:
    sleeper = [sys.executable, "-c", "import signal; signal.pause()"]
    with subprocess.Popen(sleeper) as left, subprocess.Popen(sleeper) as stranger:
        try:
            record = tmp_path / "processes.json"
            Leftovers(record).record({"left": left.pid, "stranger": stranger.pid})
            # A pid that was given to another process since: same number, another birth.
            entries = json.loads(record.read_text())
            entries[1]["birth"] = "another boot/1"
            record.write_text(json.dumps(entries))

            assert Leftovers(record).end() == [f"left (pid {left.pid})"]

            assert left.wait(SECONDS_MAX) == -signal.SIGTERM
            assert stranger.poll() is None
            assert Leftovers(record).end() == []
        finally:
            left.kill()
            stranger.kill()


def test_a_supervisor_killed_outright_leaves_a_record_to_clean_up_by(tmp_path: Path) -> None:
    source = (
        "import os, pathlib, signal, sys\n"
        "from deploy.local.supervisor import Service, Supervisor\n"
        "supervisor = Supervisor(pathlib.Path(sys.argv[1]))\n"
        "supervisor.start(Service('orphan', ('-c', 'import signal; signal.pause()')))\n"
        "print(supervisor.pid('orphan'), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", source, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    orphan = int(run.stdout)
    os.kill(orphan, 0)

    assert Leftovers(tmp_path / "processes.json").end() == [f"orphan (pid {orphan})"]

    wait_until(lambda: _is_gone(orphan), SECONDS_MAX, "the orphan ends")


def _is_gone(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return not status.exists() or "State:\tZ" in status.read_text()
