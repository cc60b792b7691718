"""Joins the modules of the dashboard's page into one small file: `python -m deploy.page_bundle`. `make setup` does it.

With `--check` it makes nothing: it ends with 0 if there is a whole bundle of the page's files, made by this program, else with 1.

The bundler is esbuild, which `deploy/local/setup.sh` fetches for this kind of machine. Without one the dashboard serves the
modules as they are.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from deploy.local.paths import LOCAL, ROOT
from services.dashboard.page import bundle
from services.dashboard.page.bundle import STATIC

#: By the machine's name, npm's name of it.
_MACHINES: Final = {"x86_64": "x64", "aarch64": "arm64"}
#: What browsers of 2022 know, as the page's own code needs it.
_TARGET: Final = "es2022"
#: Packages that no figure waits for: each is a file of its own, which comes beside the others.
_APART: Final = ("uplot",)
#: What a bundle depends on beside the page: this program, and which bundler it runs.
_MAKERS: Final = (Path(__file__), ROOT / "deploy/fetched/bundler/packages.txt")


def is_made(static: Path = STATIC) -> bool:
    """Whether there is a whole bundle of the page in `static`, as this program makes it."""
    files = bundle.read(static)
    return bundle.is_of(files) and bundle.manifest(files).get("made_by") == _made_by()


def _made_by() -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in _MAKERS)).hexdigest()


def bundler() -> Path | None:
    """The program for this kind of machine, if it was fetched."""
    machine = _MACHINES.get(platform.machine(), platform.machine())
    found = LOCAL / f"bundler/node_modules/@esbuild/linux-{machine}/bin/esbuild"
    return found if found.exists() else None


def make(program: Path, static: Path = STATIC) -> None:
    """Makes the bundle of the page in `static`, in place of an older one. Raises `CalledProcessError`; the program has said why."""
    made = static / bundle.UNFINISHED
    # Read before the bundler reads them: if one changes meanwhile, the bundle is known to be of an older one.
    files = {path: body for path, body in bundle.read(static).items() if Path(path).parts[0] != bundle.FOLDER}
    packages = bundle.packages(files["index.html"].decode())
    common = ["--bundle", "--format=esm", "--minify", f"--target={_TARGET}", "--log-level=warning"]
    common += [
        "--sourcemap=linked",
        f"--banner:js={_notice(packages)}",
        "--external:/static/*",
        f"--outdir={made.name}",
    ]
    apart = [path for name, path in packages.items() if name in _APART]
    places = {
        name: f"/static/{bundle.FOLDER}/{Path(path).name}" if path in apart else f"./{path}"
        for name, path in packages.items()
    }
    page = [f"{Path(bundle.PATH).stem}={bundle.ENTRY}", *(f"--alias:{name}={place}" for name, place in places.items())]
    try:
        for entries in (page, *([apart] if apart else [])):
            subprocess.run([str(program), *entries, *common], cwd=static, check=True)
        files |= {f"{bundle.FOLDER}/{path}": body for path, body in bundle.read(made).items()}
        known = {"made_by": _made_by(), "hashes": bundle.hashes(files)}
        (made / Path(bundle.MANIFEST).name).write_text(json.dumps(known, indent=1), encoding="utf-8")
        shutil.rmtree(static / bundle.FOLDER, ignore_errors=True)
        made.rename(static / bundle.FOLDER)
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _notice(packages: Iterable[str]) -> str:
    """What the bundle says of the licences of what it has in it."""
    return f"/*! Built on {', '.join(packages)}: the licence of each is beside it in /static/vendor/. */"


@contextlib.contextmanager
def _locked() -> Iterator[None]:
    """One set-up at a time: a second one waits, and makes the bundle of what is there then."""
    with (LOCAL / "bundler.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> int:
    """`python -m deploy.page_bundle`."""
    parser = argparse.ArgumentParser(prog="python -m deploy.page_bundle", description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="make nothing; fail if there is no bundle of the page's files"
    )
    if parser.parse_args().check:
        return 0 if is_made() else 1
    program = bundler()
    if program is None:
        print(f"no bundler for {platform.machine()}: the page is served module by module", flush=True)
        return 0
    try:
        with _locked():
            make(program)
    except subprocess.CalledProcessError as failure:
        print(f"the page's modules could not be joined: {failure}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
