"""Who starts a JVM from an archive of classes, and on which Java."""

import subprocess
from pathlib import Path

import pytest

from deploy.local import class_archives, short_spark
from deploy.local.class_archives import JDK, KAFKA, LAUNCHER, SPARK, VARIABLE, java_home, options
from tests.suite import class_archives as making
from tests.suite.class_archives import put_java


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Archives that are used, and a Java that prints each of its arguments on a line."""
    monkeypatch.setenv(VARIABLE, "1")
    real = tmp_path / "real" / "bin" / "java"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    real.chmod(0o755)
    made = tmp_path / "archives"
    put_java(made, tmp_path / "real")
    (made / KAFKA).touch()
    return made


def test_an_archive_is_used_with_the_java_that_made_it(folder: Path) -> None:
    assert java_home(KAFKA, folder) == folder / "java"
    assert options(KAFKA, folder)[0] == f"-XX:AOTCache={folder / KAFKA}"


def test_archives_are_not_used_where_nobody_asks_for_them(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE)

    assert java_home(KAFKA, folder) is None
    assert options(KAFKA, folder) == []


@pytest.mark.parametrize("missing", [KAFKA, JDK])
def test_an_archive_without_its_java_is_not_used_nor_that_java_without_the_archive(folder: Path, missing: str) -> None:
    (folder / missing).unlink()

    assert java_home(KAFKA, folder) is None
    assert options(KAFKA, folder) == []


def test_a_java_that_is_gone_is_not_used(folder: Path) -> None:
    (folder / JDK).resolve().rename(folder / "elsewhere")

    assert java_home(KAFKA, folder) is None


def test_a_spark_without_archives_is_given_no_option_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(class_archives, "java_home", lambda *_: None)

    given = short_spark.environment()

    assert "JAVA_HOME" not in given
    assert "AOT" not in f"{given}"


def test_java_is_given_every_argument_but_the_module_that_it_lacks(folder: Path) -> None:
    odd = ["-cp", "a b/*", "", "$HOME", "it's", "--add-modules=ALL-SYSTEM", "-x\\y"]
    command = [str(folder / "java" / "bin" / "java"), *odd[:3], "--add-modules=jdk.incubator.vector", *odd[3:]]

    said = subprocess.run(command, capture_output=True, text=True, check=True)

    assert said.stdout.splitlines() == odd


def test_archives_of_one_checkout_serve_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jar, kept, made = tmp_path / "one.jar", tmp_path / "cache" / "class-archives", []
    jar.write_text("classes")

    def make(folder: Path, run: Path) -> None:
        made.append(folder)
        for archive in (KAFKA, SPARK, LAUNCHER):
            (folder / archive).write_text(f"{archive} {len(made)}")

    monkeypatch.setattr(making, "_jars", lambda: [jar])
    monkeypatch.setattr(making, "_make", make)
    first, second = tmp_path / "first" / "archives", tmp_path / "second" / "archives"
    for folder in (first, first, second):
        making.ensure(folder, kept)
        assert (folder / SPARK).read_text() == f"{SPARK} 1"
    assert len(made) == 1
    assert jar.stat().st_mtime == making._JARS_TIME

    # Another jar by its size: the archives are made again, and are the ones that are kept.
    jar.write_text("other classes")
    for folder in (second, first):
        making.ensure(folder, kept)
        assert (folder / SPARK).read_text() == f"{SPARK} 2"
    assert len(made) == 2
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_kept_archives_that_are_not_whole_are_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, made = tmp_path / "class-archives", []

    def make(folder: Path, run: Path) -> None:
        made.append(folder)
        for archive in (KAFKA, SPARK, LAUNCHER):
            (folder / archive).touch()

    monkeypatch.setattr(making, "_jars", list)
    monkeypatch.setattr(making, "_make", make)
    making.ensure(tmp_path / "first", kept)
    (kept / LAUNCHER).unlink()
    making.ensure(tmp_path / "second", kept)
    assert len(made) == 2
