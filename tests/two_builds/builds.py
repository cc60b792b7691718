"""Builds of the processor, each a folder with its code: former ones from the repository's history, and this one.

A release is a tag `v…` and the images of that name. Where no tag leads to this commit, the last release is the commit that gave
CHANGELOG its newest section with a date.
"""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from deploy.local.paths import ROOT

#: Version 0.1.0, which was installed nowhere: its formats have changed since under the same numbers, and with lower ones.
VERSION_0_1_0: Final = "b2f75dee1c4dffbb9c5945324568732f3531868b"
#: The first commit with the store of cohorts, and so with the stores and formats of today: what is older cannot read what is newer.
FIRST_WITH_COHORTS: Final = "759384971e80dcb4ef4ff63a5357862be44b8a31"
#: What a slot and the command for topics are made of.
_FOLDERS: Final = ("services", "shared", "deploy")
_STORES: Final = "services/processor/applications/video_views/stores.py"
_VIEWS: Final = """\
VIEWS: Final = StoreSpec(
    name="views",
    id=1,
    encode=msgspec.msgpack.encode,
    decode=msgspec.msgpack.Decoder(ViewState).decode,
    record_key=session_key,
)
"""
#: The next format of the same store: a byte in front that no row of the present format begins with.
_NEXT: Final = """\
_decode = msgspec.msgpack.Decoder(ViewState).decode


def _encode_next(view: ViewState) -> bytes:
    return bytes([0xC1]) + msgspec.msgpack.encode(view)


def _decode_next(data: bytes) -> ViewState:
    if data[0] != 0xC1:
        raise ValueError("a row of another format")
    return _decode(data[1:])


"""
_READS_NEXT: Final = (
    _NEXT
    + """\
VIEWS: Final = StoreSpec(
    name="views",
    id=1,
    encode=msgspec.msgpack.encode,
    decode=_decode,
    also_reads={2: _decode_next},
    record_key=session_key,
)
"""
)
_WRITES_NEXT: Final = (
    _NEXT
    + """\
VIEWS: Final = StoreSpec(
    name="views",
    id=1,
    encode=_encode_next,
    decode=_decode_next,
    format=2,
    also_reads={1: _decode},
    record_key=session_key,
)
"""
)


class NoHistory(RuntimeError):
    """The repository has not the commit; the text says how to get it."""


def last_release() -> str:
    """The commit of the last release before this commit. Raises `NoHistory`."""
    tags = _git("tag", "--list", "v[0-9]*", "--sort=-version:refname", "--merged", "HEAD").split()
    if tags:
        return tags[0]
    dated = re.search(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    found = _git("log", "--format=%H", f"-S{dated[0]}", "--", "CHANGELOG.md").split() if dated is not None else []
    if not found:
        raise NoHistory("no commit of the history made a release: fetch all of it with `git fetch --unshallow --tags`")
    return found[-1]


def last_of_these_formats() -> str:
    """The last release, unless it is older than the formats of today: then the oldest commit that has them."""
    release = last_release()
    return release if _is_ancestor(FIRST_WITH_COHORTS, release) else FIRST_WITH_COHORTS


def former(commit: str, folder: Path) -> Path:
    """The build of a commit, in a new folder. Raises `NoHistory`."""
    folder.mkdir()
    archive = folder / "build.tar"
    _git("archive", f"--output={archive}", commit, *_FOLDERS)
    subprocess.run(["tar", "-xf", archive.name], cwd=folder, check=True)
    archive.unlink()
    return folder


def with_next_format(folder: Path, *, writes: bool) -> Path:
    """This build with a further format of the store of views: one that reads it, or one that writes it too."""
    for name in _FOLDERS:
        # With what is compiled: all but one of the files are the same.
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("node_modules", "jars"))
    stores = folder / _STORES
    text = stores.read_text()
    assert _VIEWS in text, f"{_STORES} declares the store of views in other words: change them here too"
    stores.write_text(text.replace(_VIEWS, _WRITES_NEXT if writes else _READS_NEXT))
    return folder


def _is_ancestor(first: str, then: str) -> bool:
    return _git("merge-base", first, then).strip() == first


def _git(*arguments: str) -> str:
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise NoHistory(f"git {arguments[0]}: {ran.stderr.strip()}: fetch all with `git fetch --unshallow --tags`")
    return ran.stdout
