"""A fork of a template is what a new interpreter would be: arguments, folder, environment, output, exit code, signals."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from deploy.local.paths import ROOT
from deploy.local.process import Child, wait_until
from tests.suite import control_groups, prefork

MODULE = "tests.unit.tests.suite.prefork_program"
SECONDS_MAX = 60.0


def child(folder: Path, *arguments: str, **env: str) -> Child:
    argv = [sys.executable, "-m", MODULE, *arguments]
    return Child("program", argv, log_file=folder / "log", env={"PATH": os.environ["PATH"], **env}, folder=folder)


def said(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "log").read_text())
    return found


def ended(started: Child) -> int | None:
    wait_until(lambda: not started.is_running, SECONDS_MAX, "the program ends")
    return started.exit_code


@pytest.fixture(autouse=True)
def same_interpreter(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the interpreter reads when it starts is as in the template."""
    for name in list(os.environ):
        if name.startswith(prefork.READ_AT_START):
            monkeypatch.delenv(name)


def test_a_fork_has_its_own_arguments_folder_environment_and_output(tmp_path: Path) -> None:
    started = child(tmp_path, "exit", "3", PREFORK_VALUE="ours")
    started.start()
    assert isinstance(started._process, prefork.Forked)
    assert ended(started) == 3
    expected = {"folder": str(tmp_path), "value": "ours", "of_tests": False, "session": True, "main": "__main__"}
    found = said(tmp_path)
    assert {name: found[name] for name in ("arguments", *expected)} == {"arguments": ["exit", "3"], **expected}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_the_fork_that_it_is_for(tmp_path: Path, number: signal.Signals) -> None:
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    hit, spared = (child(folder, "wait") for folder in folders)
    hit.start()
    spared.start()
    for one in (hit, spared):
        wait_until(lambda log=one.log_file: "wait" in log.read_text(), SECONDS_MAX, "the program runs")  # type: ignore[misc]
    hit.signal(number)
    assert ended(hit) == -number
    assert spared.is_running
    spared.kill()
    assert ended(spared) == -signal.SIGKILL
    # A signal for a process that has ended hits nobody.
    hit.signal(number)


def test_a_fork_whose_output_is_unbuffered_is_heard_while_it_runs(tmp_path: Path) -> None:
    heard = child(tmp_path, "say", PYTHONUNBUFFERED="1")
    heard.start()
    assert isinstance(heard._process, prefork.Forked)
    wait_until(lambda: "say" in heard.log_file.read_text(), SECONDS_MAX, "it is heard")
    heard.kill()


def test_threads_ask_one_template_at_a_time(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(4)]
    for folder in folders:
        folder.mkdir()
    codes = [str(number) for number in range(4)]

    def code_of(folder: Path, code: str) -> int | None:
        started = child(folder, "exit", code)
        started.start()
        return ended(started)

    with ThreadPoolExecutor(len(folders)) as threads:
        assert list(threads.map(code_of, folders, codes)) == [0, 1, 2, 3]


def test_an_answer_that_a_signal_kept_from_being_read_is_not_that_of_the_next_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = child(tmp_path, "wait")
    started.start()
    template = prefork.template_of(MODULE)
    with monkeypatch.context() as patch:
        patch.setattr(template, "_socket", Interrupted(template._socket))
        with pytest.raises(KeyboardInterrupt):
            started.signal(signal.SIGCONT)
    assert started.is_running
    started.kill()
    assert started.exit_code == -signal.SIGKILL


class Interrupted:
    """A socket whose reader a signal interrupts."""

    def __init__(self, real: socket.socket) -> None:
        self.sendmsg = real.sendmsg

    def recv(self, _: int) -> bytes:
        raise KeyboardInterrupt


def test_another_interpreter_is_started_where_a_fork_would_differ(tmp_path: Path) -> None:
    started = child(tmp_path, "exit", "0", PYTHONHASHSEED="1")
    started.start()
    assert not isinstance(started._process, prefork.Forked)
    # Outside the checkout the module is not found.
    assert ended(started) == 1


def test_a_program_of_another_build_is_a_fork_of_what_that_build_has(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name / "services").mkdir(parents=True)
        (tmp_path / name / "services" / "__init__.py").touch()
        (tmp_path / name / "services" / "program.py").write_text(f"if __name__ == '__main__': print({name!r})")
        argv = [sys.executable, "-m", "services.program"]
        environ = {"PATH": os.environ["PATH"]}
        started = Child(name, argv, log_file=tmp_path / f"{name}.log", env=environ, folder=tmp_path / name)
        started.start()
        assert isinstance(started._process, prefork.Forked)
        assert ended(started) == 0
        assert started.log_file.read_text() == f"{name}\n"


#: Begins a run unless it is of one, starts the program, says that it has, and waits for its standard input to end.
_ANOTHER = """
import os, sys
from pathlib import Path
from tests.suite import control_groups, prefork

if controller := os.environ.get("JOINS"):
    control_groups.join(controller)
run = prefork.Run()
with open(sys.argv[1], "wb") as log:
    started = prefork.start([sys.executable, "-m", sys.argv[2], "wait"], log.fileno(), os.environ, Path.cwd())
assert isinstance(started, prefork.Forked)
print("started", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(folder: Path, **environ: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has started the program."""
    argv = [sys.executable, "-c", _ANOTHER, str(folder / "log"), MODULE]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(argv, cwd=ROOT, env=os.environ | environ, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            assert process.stdout.readline() == "started\n"
            wait_until(lambda: "wait" in (folder / "log").read_text(), SECONDS_MAX, "the program runs")
            yield process
        finally:
            process.kill()


def test_processes_of_a_run_share_a_template(tmp_path: Path) -> None:
    found = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        with another_process(tmp_path / name):
            found.append(said(tmp_path / name))
    for one in found:
        os.kill(one["process"], signal.SIGKILL)
    assert found[0]["template"] == found[1]["template"]


def test_templates_and_forks_end_with_the_process_that_has_begun_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A socket's path may have 107 bytes.
    with tempfile.TemporaryDirectory() as folder, monkeypatch.context() as patch:
        patch.delenv(prefork.VARIABLE)
        with another_process(tmp_path, TMPDIR=folder):
            found = said(tmp_path)
        ends = [Path("/proc", str(found[name])) for name in ("process", "template")]
        wait_until(lambda: not any(map(is_alive, ends)), SECONDS_MAX, "both end")


def is_alive(process: Path) -> bool:
    """A process that nobody has waited for yet has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def run_of_its_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Templates that no other worker has."""
    monkeypatch.delenv(prefork.VARIABLE)
    monkeypatch.setattr(prefork, "_templates", {})
    run = prefork.Run()
    yield
    for template in prefork._templates.values():
        template._socket.close()
    run.end()


@pytest.mark.usefixtures("run_of_its_own")
def test_a_template_that_has_ended_is_said_to_have_and_the_next_process_has_another(tmp_path: Path) -> None:
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours = child(tmp_path / "ours", "wait")
    ours.start()
    wait_until(lambda: "wait" in ours.log_file.read_text(), SECONDS_MAX, "the program runs")
    template = prefork.template_of(MODULE)
    os.kill(said(tmp_path / "ours")["template"], signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"the template of {MODULE} has ended"):
        template.ask({"poll": 1})
    theirs = child(tmp_path / "theirs", "exit", "0")
    theirs.start()
    assert isinstance(theirs._process, prefork.Forked)
    assert ended(theirs) == 0


def test_a_module_that_cannot_be_imported_says_why() -> None:
    template = prefork.template_of("tests.unit.no_such_module")
    with pytest.raises(RuntimeError, match=r"No module named 'tests\.unit\.no_such_module'"):
        template.ask({"poll": 1})


def test_a_fork_is_in_the_control_groups_of_who_has_started_it(tmp_path: Path) -> None:
    if not control_groups.may_join("cpuacct"):
        pytest.skip("needs root and cgroup v1")
    with another_process(tmp_path, JOINS="cpuacct") as process:
        found = said(tmp_path)
        its_own = Path("/proc", str(process.pid), "cgroup").read_text()
    os.kill(found["process"], signal.SIGKILL)
    wait_until(lambda: not is_alive(Path("/proc", str(found["process"]))), SECONDS_MAX, "it ends")
    control_groups.remove_empty("cpuacct")
    assert f"/playhead-{process.pid}\n" in its_own
    assert found["groups"] == its_own
