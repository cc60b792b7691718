"""Which build of its modules a process chooses; `tests/integration/processor/test_compiled.py` compares what both write."""

import importlib
import json
from pathlib import Path

import pytest

from deploy.compiled import build
from deploy.compiled.modules import MODULES
from deploy.local.paths import ROOT
from services.rim.process import compiled
from services.rim.process.compiled import MANIFEST, SUFFIX, Build, choose, source_digest


def build_in(folder: Path, **changed: object) -> None:
    modules = ["services.processor.engine.state.layers"]
    made = {"code": source_digest(), "suffix": SUFFIX, "library": "p__mypyc", "modules": modules} | changed
    (folder / MANIFEST).write_text(json.dumps(made))


def test_the_interpreted_build_runs_where_no_other_is_named() -> None:
    assert choose("processor", {}) == Build(False, "PROCESSOR_COMPILED_DIR is not set")


def test_a_build_beside_the_packages_is_used_as_a_wheel_has_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "BESIDE", tmp_path)
    assert choose("collector", {}) == Build(False, "COLLECTOR_COMPILED_DIR is not set")
    build_in(tmp_path, code="0" * 16)
    assert choose("collector", {}) == Build(False, f"{tmp_path} is made from other code")
    assert choose("collector", {"COLLECTOR_COMPILED": "off"}).reason == "COLLECTOR_COMPILED=off"
    hook = (ROOT / "deploy" / "wheel_hook.py").read_text()
    assert 'FOLDER: Final = "playhead_compiled"' in hook


def test_a_build_that_is_switched_off_is_not_looked_at(tmp_path: Path) -> None:
    settings = {"PROCESSOR_COMPILED": "off", "PROCESSOR_COMPILED_DIR": str(tmp_path)}
    assert choose("processor", settings) == Build(False, "PROCESSOR_COMPILED=off")


def test_a_wrong_setting_chooses_the_interpreted_build_and_says_why() -> None:
    chosen = choose("processor", {"PROCESSOR_COMPILED": "perhaps"})
    assert not chosen.is_compiled
    assert "PROCESSOR_COMPILED='perhaps'" in chosen.reason


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "No such file"), ("{", "build.json: "), ('{"code": 1}', "build.json: ")]
)
def test_a_folder_without_a_build_is_not_used(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / MANIFEST).write_text(content)
    chosen = choose("processor", {"PROCESSOR_COMPILED_DIR": str(tmp_path)})
    assert not chosen.is_compiled
    assert reason in chosen.reason


def test_a_build_of_other_code_is_not_used(tmp_path: Path) -> None:
    build_in(tmp_path, code="0" * 16)
    assert choose("processor", {"PROCESSOR_COMPILED_DIR": str(tmp_path)}) == Build(
        False, f"{tmp_path} is made from other code"
    )


def test_a_build_is_current_while_nothing_of_how_it_is_made_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not build.is_current(tmp_path)
    build_in(tmp_path)
    assert not build.is_current(tmp_path)
    build_in(tmp_path, recipe=build.recipe())
    assert build.is_current(tmp_path)
    build_in(tmp_path, recipe=build.recipe(), code="0" * 16)
    assert not build.is_current(tmp_path)

    build_in(tmp_path, recipe=build.recipe())
    header = tmp_path / "attributes.h"
    header.write_text("/* another */")
    monkeypatch.setattr(build, "_HEADER", header)
    assert not build.is_current(tmp_path)


def test_a_build_is_not_used_by_a_process_that_has_imported_the_fold(tmp_path: Path) -> None:
    importlib.import_module("services.processor.engine.state.layers")
    build_in(tmp_path)
    chosen = choose("processor", {"PROCESSOR_COMPILED_DIR": str(tmp_path)})
    assert not chosen.is_compiled
    assert chosen.reason.endswith("layers was imported before the build was chosen")


def test_every_module_that_is_compiled_exists_and_has_its_reason() -> None:

    assert [name for name in MODULES if not (ROOT / f"{name.replace('.', '/')}.py").exists()] == []
    assert all(MODULES.values())


def test_no_module_that_is_compiled_has_a_class_whose_options_would_be_lost() -> None:

    bases = ("Struct", "NamedTuple", "BaseModel", "SettingsGroup", "TypedDict")
    for name in MODULES:
        lines = (ROOT / f"{name.replace('.', '/')}.py").read_text().splitlines()
        declared = [line for line in lines if line.startswith("class ") and any(base in line for base in bases)]
        assert declared == [], name


def test_an_empty_folder_is_none_and_not_the_current_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build_in(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert choose("collector", {"COLLECTOR_COMPILED_DIR": ""}) == Build(False, "COLLECTOR_COMPILED_DIR is not set")
