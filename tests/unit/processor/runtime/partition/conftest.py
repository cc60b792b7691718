"""A partition to drive."""

import pytest

from tests.unit.processor.runtime.partition.scene import Scene


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return Scene(monkeypatch)
