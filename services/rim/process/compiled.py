"""Chooses between the two builds of a service's busiest modules: as Python interprets them, or compiled from the same source.

A build is a folder that `make compile` makes (`deploy/compiled`): a library for each module, and `build.json`. It is used only
with the code and the interpreter that it was made from. Python decides where a module comes from when it imports it, so `choose`
comes before any of them is imported.
"""

import hashlib
import importlib.util
import json
import os
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import ClassVar, Final, Literal, NamedTuple

import pydantic

from shared.settings import SettingsError, SettingsGroup

MANIFEST: Final = "build.json"
#: A wheel's build, beside its packages (`deploy/wheel_hook.py`); a checkout has none there.
BESIDE: Final = Path(__file__).parents[3] / "playhead_compiled"
#: The packages whose modules may be compiled, and those that they read.
_SOURCES: Final = ("services/collector", "services/processor", "services/rim", "shared")
_DIGEST_BYTES: Final = 8
#: The end of a library's file name; it names the interpreter that can load it.
SUFFIX: Final = str(sysconfig.get_config_var("EXT_SUFFIX"))


class CompiledSettings(SettingsGroup):
    """Which build runs; a service has these settings under its own prefix."""

    compiled: Literal["auto", "off", "required"] = pydantic.Field(
        default="auto",
        description="auto: compiled code where the folder of the next setting has it of this source; off: interpreted code;"
        " required: does not start without compiled code",
    )
    compiled_dir: Path | None = pydantic.Field(
        default=None,
        description="a folder that `make compile` made; images have one, and wheels made with PLAYHEAD_COMPILE=1",
    )


class Manifest(pydantic.BaseModel):
    """What a build says of itself."""

    model_config = pydantic.ConfigDict(frozen=True)

    #: `source_digest` of what it was made from: constants of modules that are not compiled are part of it too.
    code: str
    #: Of how it was made: `deploy.compiled.build.recipe`. A process need not know it.
    recipe: str = ""
    suffix: str
    #: What all its modules load first.
    library: str
    modules: frozenset[str]


class Build(NamedTuple):
    """Which build runs, and why."""

    is_compiled: bool
    reason: str


class WrongBuild(ValueError):
    """A build that this process cannot use; the text says why."""


def choose(service: str, environ: Mapping[str, str]) -> Build:
    """Decides which build a service's modules come from when they are imported; `service` is its name, as `processor`.

    A wrong setting chooses the interpreted one: the service says what is wrong when it reads its settings.
    """

    class Own(CompiledSettings):
        PREFIX: ClassVar[str] = f"{service.upper()}_"

    variables = [Own.variable(field) for field in Own.model_fields]
    try:
        settings = Own.load({name: environ[name] for name in variables if name in environ})
    except SettingsError as error:
        return Build(False, str(error))
    if settings.compiled == "off":
        return Build(False, f"{Own.variable('compiled')}=off")
    # An empty setting names no folder. As a path it would be the current one.
    named = settings.compiled_dir if settings.compiled_dir != Path() else None
    folder = named or (BESIDE if os.path.exists(BESIDE / MANIFEST) else None)  # noqa: PTH110 (raises nothing)
    if folder is None:
        return Build(False, f"{Own.variable('compiled_dir')} is not set")
    try:
        _use(folder, manifest_of(folder))
    except WrongBuild as error:
        return Build(False, str(error))
    return Build(True, str(folder))


def check(settings: CompiledSettings, build: Build) -> None:
    """Raises `SettingsError` where compiled code is required and another build was chosen."""
    if settings.compiled == "required" and not build.is_compiled:
        raise SettingsError(f"{settings.variable('compiled')}=required: {build.reason}")


def source_digest() -> str:
    """The digest of what compiled modules are made from, and of what they read, hexadecimal."""
    root = Path(__file__).parents[3]
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for folder in _SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\x00" + path.read_bytes())
    return digest.hexdigest()


def manifest_of(folder: Path) -> Manifest:
    """The manifest of the build in `folder`. Raises `WrongBuild` where this process cannot use it."""
    try:
        manifest = Manifest.model_validate(json.loads((folder / MANIFEST).read_bytes()))
    except (OSError, ValueError) as error:
        raise WrongBuild(f"{folder / MANIFEST}: {error}") from None
    if manifest.suffix != SUFFIX:
        raise WrongBuild(f"{folder} is made for {manifest.suffix}, not for {SUFFIX}")
    try:
        is_of_source = manifest.code == source_digest()
    except OSError as error:
        raise WrongBuild(f"the source cannot be read: {error}") from None
    if not is_of_source:
        raise WrongBuild(f"{folder} is made from other code")
    return manifest


def _use(folder: Path, manifest: Manifest) -> None:
    finder = _Finder(folder, manifest.modules | {manifest.library})
    if finder in sys.meta_path:
        return
    if imported := sorted(manifest.modules & sys.modules.keys()):
        raise WrongBuild(f"{imported[0]} was imported before the build was chosen")
    sys.meta_path.insert(0, finder)
    try:
        # It runs no module: it shows whether the libraries can be loaded here at all.
        importlib.import_module(manifest.library)
    except ImportError as error:
        sys.meta_path.remove(finder)
        raise WrongBuild(f"{folder}: {error}") from None


class _Finder(MetaPathFinder):
    """Finds modules of a build by their whole names."""

    def __init__(self, folder: Path, modules: frozenset[str]) -> None:
        self._folder = folder
        self._modules = modules

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Finder) and (other._folder, other._modules) == (self._folder, self._modules)

    def __hash__(self) -> int:
        return hash((self._folder, self._modules))

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 (Python's signature)
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if fullname not in self._modules:
            return None
        return importlib.util.spec_from_file_location(fullname, self._folder / f"{fullname}{SUFFIX}")
