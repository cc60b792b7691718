"""Compiles the processor's fold and the collector's intake: `python -m deploy.compiled.build [--to FOLDER]`, or `make compile`.

mypyc makes C of the modules that `modules.MODULES` names, and the C compiler makes a library of each. The checkout stays as it is:
the work is done on a copy, and what is made goes into a folder of its own. PROCESSOR_COMPILED_DIR and COLLECTOR_COMPILED_DIR
name that folder.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Final

from deploy.compiled.modules import MODULES
from deploy.local.paths import ROOT
from services.rim.process.compiled import MANIFEST, SUFFIX, Manifest, WrongBuild, manifest_of, source_digest

FOLDER: Final = ROOT / ".local" / "compiled"
#: The start of the file name of what all libraries load first.
_GROUP: Final = "playhead"
#: Included before the C of each module.
_HEADER: Final = Path(__file__).with_name("attributes.h")
BUILD_SECONDS_MAX: Final = 1_800
_DIGEST_BYTES: Final = 8
#: A program of its own: setuptools works in the current folder, and reads its files.
_SETUP: Final = """
import json, sys
from mypyc.build import mypycify
from setuptools import setup
asked = json.loads(sys.argv[1])
extensions = mypycify(
    # No settings of the checkout: they would check packages that are not here.
    ["--config-file=", "--strict", "--ignore-missing-imports", "--follow-imports=silent", *asked["files"]],
    opt_level=asked["level"], debug_level="0", group_name=asked["group"],
)
for extension in extensions:
    # A module's own library only loads the one of all, which has their code.
    if extension.include_dirs:
        extension.extra_compile_args = [
            # To see whether lines are indented as they mean, the compiler reads these files again: half of its time.
            *(*extension.extra_compile_args, "-Wno-misleading-indentation"),
            *("-include", asked["header"]),
        ]
setup(name=asked["group"], packages=[], ext_modules=extensions, script_args=["--quiet", "build_ext", "--inplace"])
"""


class NotCompiled(RuntimeError):
    """The modules were not compiled; the text is the end of what the compiler said."""


def build(folder: Path, level: str = "2") -> Manifest:
    """Compiles the fold into `folder`, which is replaced; `level` is the C compiler's. Raises `NotCompiled`."""
    code = source_digest()
    with tempfile.TemporaryDirectory(prefix="compiled-") as name:
        copy = Path(name)
        for package in ("services", "shared"):
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__", "static"))
        compile_modules(copy, MODULES, group=_GROUP, level=level)
        manifest = Manifest(
            code=code,
            recipe=recipe(),
            suffix=SUFFIX,
            library=f"{_GROUP}__mypyc",
            modules=frozenset(MODULES),
        )
        made = copy / "made"
        made.mkdir()
        for module in (*MODULES, manifest.library):
            shutil.copy(copy / f"{module.replace('.', '/')}{SUFFIX}", made / f"{module}{SUFFIX}")
        (made / MANIFEST).write_text(json.dumps(manifest.model_dump(mode="json"), indent=1) + "\n")
        # A copy that is cut off is no build.
        whole = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(whole, ignore_errors=True)
        shutil.copytree(made, whole)
        shutil.rmtree(folder, ignore_errors=True)
        whole.rename(folder)
    return manifest_of(folder)


def recipe() -> str:
    """The digest of how code is compiled: the header, what mypyc is asked, and its version."""
    digest = hashlib.blake2b(_HEADER.read_bytes(), digest_size=_DIGEST_BYTES)
    digest.update(repr((_SETUP, sorted(MODULES), version("mypy"))).encode())
    return digest.hexdigest()


def is_current(folder: Path) -> bool:
    """Whether `build` would make the same of the present source, at this or another level of the C compiler."""
    try:
        return manifest_of(folder).recipe == recipe()
    except WrongBuild:
        return False


def compile_modules(folder: Path, modules: Iterable[str], *, group: str, level: str) -> None:
    """Compiles modules of a folder, each into a library beside its source; raises `NotCompiled`."""
    files = [f"{module.replace('.', '/')}.py" for module in modules]
    asked = json.dumps({"files": files, "level": level, "group": group, "header": str(_HEADER)})
    try:
        # -P: of the folder nothing is run.
        ended = subprocess.run(
            [sys.executable, "-P", "-c", _SETUP, asked],
            cwd=folder,
            env=os.environ | {"MYPYPATH": str(folder), "PYTHONWARNINGS": "ignore"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=BUILD_SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise NotCompiled(f"not done after {BUILD_SECONDS_MAX} s") from None
    if ended.returncode:
        raise NotCompiled(ended.stdout[-4_000:])


def main(arguments: Sequence[str]) -> int:
    """The command; 1 when the modules were not compiled."""
    parser = argparse.ArgumentParser(prog="python -m deploy.compiled.build", description=__doc__)
    parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="where the libraries go")
    given = parser.parse_args(arguments)
    try:
        manifest = build(given.to)
    except NotCompiled as problem:
        print(problem, file=sys.stderr)
        return 1
    print(f"{len(manifest.modules)} modules of {manifest.code} in {given.to}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
