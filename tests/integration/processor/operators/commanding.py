"""Commands of operators as processes of their own, some killed at a step."""

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from deploy.local import process
from services.processor.catalogue import APPLICATIONS
from services.processor.runtime.operations.state import whole
from services.processor.settings import ProcessorSettings
from services.rim.process.crash_points import CrashPoints
from tests.integration.parts.installed import variables
from tests.integration.parts.slots import ROOT

SECONDS_MAX: Final = 120.0
KILLED: Final = -9
#: Where each act on state may be killed; after the last step it is done.
STEPS: Final = ("fenced", "begun", "produced", "committed")


class Commands:
    """Runs `python -m MODULE …` against one broker; what each printed stays in `folder`."""

    def __init__(self, bootstrap: str, folder: Path, **environ: str) -> None:
        self.bootstrap = bootstrap
        self._folder = folder
        self._environ = environ
        self._count = 0

    def run(self, *arguments: str, crash_at: str = "", module: str = "services.processor") -> tuple[int, Any]:
        """The exit code (negative: the signal's number), with its JSON, or with what it printed when it failed."""
        self._count += 1
        output = self._folder / f"command-{self._count}.log"
        environ = {
            **os.environ,
            **variables(self.bootstrap),
            **self._environ,
            **({"PROCESSOR_CRASH_AT": crash_at} if crash_at else {}),
        }
        with output.open("wb") as file:
            started = process.launch([sys.executable, "-m", module, *arguments], file.fileno(), environ, ROOT, None)
        code = started.wait(SECONDS_MAX)
        text = output.read_text()
        return code, json.loads(text.splitlines()[-1]) if code == 0 and module == "services.processor" else text

    def done(self, *arguments: str, module: str = "services.processor") -> Any:
        """What a command answers that must succeed."""
        code, answer = self.run(*arguments, module=module)
        assert code == 0, answer
        return answer

    def refused(self, why: str, *arguments: str) -> None:
        """The command must be refused, and say why."""
        code, answer = self.run(*arguments)
        assert (code, why in str(answer)) == (1, True), answer

    def held(self) -> list[whole.Done]:
        """What the application holds now: rows and offsets of each partition."""
        settings = ProcessorSettings.load({**variables(self.bootstrap), **self._environ})
        application = APPLICATIONS["video_views"]({}).under(settings.application_id("video_views"))
        return whole.export(settings, application, Path("nowhere"), is_dry=True, points=CrashPoints())

    def killed_at_each_step(self, *arguments: str) -> None:
        """Kills the command at each step: before its commit it has done nothing, behind it everything."""
        before = self.held()
        for step in STEPS:
            code, answer = self.run(*arguments, crash_at=step)
            assert code == KILLED, answer
            assert (self.held() == before) == (step != "committed"), f"killed at {step}"
