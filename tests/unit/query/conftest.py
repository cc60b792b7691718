"""Views and an engine for the tests of lists."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.query.rim.engine import Engine
from shared.schemas.view import View
from tests.unit.query.parts.recounting import a_view

_CODES = (None, None, "404", "net", "decode")


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    made = Engine(Path(tmp_path_factory.mktemp("engine")), threads=1, memory_bytes_max=1 << 30, questions_max=1)
    yield made
    made.close()


@pytest.fixture(scope="module")
def views() -> list[View]:
    chance = random.Random(11)
    return [
        a_view(
            chance,
            f"view-{number}",
            error_code=(code := chance.choice(_CODES)),
            error_message=chance.choice([None, f"{code} happened", "again"]) if code else None,
            video_id=chance.choice([None, "final", "final", "news"]),
            video_title=chance.choice(["The Final", "Evening News", None]),
            video_duration_ms=600_000,
            max_playhead_ms=chance.randrange(700_000),
            playback_ranges=chance.choice([[], [[0, 60_000]], [[0, 300_000], [120_000, 240_000]]]),
        )
        for number in range(200)
    ]
