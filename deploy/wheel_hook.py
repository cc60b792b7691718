"""Puts the compiled modules into a wheel, where that is asked for: `PLAYHEAD_COMPILE=1 pip wheel --no-deps .`

A hook of hatchling. The wheel is then of one interpreter and one kind of machine. Its services find the build beside their code.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface  # type: ignore[import-not-found]

#: As `services.rim.process.compiled.BESIDE` has it, which cannot be imported before its packages are there.
FOLDER: Final = "playhead_compiled"
_EXTRAS: Final = ("collector", "processor", "compile")


class CompiledModules(BuildHookInterface):  # type: ignore[misc]
    """Compiles, and includes what was made."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """What compiling needs: the compiler, and the packages whose types the modules use."""
        if not _is_asked():
            return []
        core = self.metadata.core
        return [*core.dependencies, *(one for extra in _EXTRAS for one in core.optional_dependencies[extra])]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 (as hatchling calls it)
        """Raises `subprocess.CalledProcessError` where the modules were not compiled; the compiler has said why."""
        if not _is_asked():
            return
        self._work = Path(tempfile.mkdtemp(prefix="playhead-wheel-"))
        made = self._work / FOLDER
        command = [sys.executable, "-m", "deploy.compiled.build", "--to", str(made)]
        # What the build needs may be on the path alone: pip gives no interpreter of its own.
        path = os.pathsep.join([self.root, *filter(None, [os.environ.get("PYTHONPATH")])])
        try:
            subprocess.run(command, cwd=self.root, env=os.environ | {"PYTHONPATH": path}, check=True)
        except subprocess.CalledProcessError:
            shutil.rmtree(self._work, ignore_errors=True)
            raise
        build_data["force_include"][str(made)] = FOLDER
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 (as hatchling calls it)
        """Removes what the wheel has by now."""
        if _is_asked():
            shutil.rmtree(self._work, ignore_errors=True)


def _is_asked() -> bool:
    return os.environ.get("PLAYHEAD_COMPILE") == "1"
