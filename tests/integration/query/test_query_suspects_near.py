"""Suspects near the line: what a sample shows alone, what all views confirm beside it, and what stays possible."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from msgspec import structs, to_builtins

from deploy.local.postgres import Postgres as Server
from services.query.core.sql.lots import lots
from services.query.core.suspects.question import SUSPECTS_MAX
from services.query.suspecting import Suspecting, _Searching
from shared.schemas.view import View
from shared.statistics.suspects.sampling import FEW_OF
from shared.statistics.suspects.suspect import LINE, NEAR, POSSIBLE_MAX
from tests.integration.query.querying import Installation, installed
from tests.integration.query.suspected_views import FROM_MS, NOW, USUAL, WORSE, asked, figures, named, suspected, viewed
from tests.unit.query.parts.recounting import HOUR_MS

pytestmark = pytest.mark.integration

#: Another one, which fails less often.
INCIDENT = {"cdn": "akamai", "asn": 3209, "player_version": "1.2"}


@pytest.mark.parametrize("bad_max", [10**6, 800])
async def test_a_small_incident_beside_a_large_one_is_above_the_line_too(
    postgres: Server, tmp_path: Path, bad_max: int
) -> None:
    """Beside all views it would be none: the large one made them worse together."""

    def at(number: int) -> View:
        made = viewed(number)
        is_hit = number < NOW and made.cdn == "own" and number % 5 < 3
        return structs.replace(made, playback_failed=True) if is_hit else made

    with installed(postgres, tmp_path) as made:
        made.in_warehouse([at(number) for number in range(NOW + USUAL)])
        made.settle(FROM_MS // HOUR_MS)
        found = await suspected(made, bad_max=bad_max)

    assert [named(one) for one in found.suspects] == [{"cdn": "own"}, WORSE]
    assert (found.read.sampled < found.read.views) == (bad_max < 10**6)
    for one in found.suspects:
        assert one.excess > 0
        assert one.factor > 1.25
        assert one.surprise > LINE


@pytest.mark.parametrize("has_incident", [False, True])
async def test_what_only_a_sample_shows_is_no_suspect_and_takes_no_others_place(
    postgres: Server, tmp_path: Path, has_incident: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views are sampled by their times. Those of one CDN that failed came at times that the sample has; as many failed as ever."""
    bad_of = FEW_OF

    def at(number: int) -> View:
        made = viewed(number)
        is_bad = number % 20 == 0
        if has_incident and number < NOW and (made.cdn, made.asn, made.player_version) == tuple(INCIDENT.values()):
            is_bad = number % 20 < 7
        wanted = 0 if is_bad and made.cdn == "own" else number // 20 % bad_of
        times = made.first_append_ms + np.arange(50)
        at_ms = int(times[lots(times) % bad_of == wanted][0]) if number < NOW else made.first_append_ms
        return structs.replace(made, playback_failed=is_bad, first_append_ms=at_ms)

    with installed(postgres, tmp_path) as made:
        views = [at(number) for number in range(NOW + USUAL)]
        made.in_warehouse(views)
        made.settle(FROM_MS // HOUR_MS)
        async with made.answering() as answering:
            # By the few it is one in so many.
            bad_max = sum(
                view.playback_failed and int(lots(np.int64(view.first_append_ms))) % bad_of == 0 for view in views[:NOW]
            )
            suspecting = Suspecting(answering, bad_max=bad_max, good_max=10 * bad_max)
            reading = [await answering.reading(side) for side in (asked().now, asked().usual)]
            samples = [
                await suspecting._sample(asked().measured, side, read)
                for side, read in zip((asked().now, asked().usual), reading, strict=True)
            ]
            of_sample = _Searching(replace(asked(), against="usual"), samples).until(SUSPECTS_MAX).found
            counted = []
            figures_of = suspecting._figures

            async def counting(*given: Any) -> pa.Table:
                counted.append(given)
                return await figures_of(*given)

            monkeypatch.setattr(suspecting, "_figures", counting)
            found = await suspecting.suspects(asked(limit="1"))

    assert len(counted) == 4, (
        "all views of now and of usually: of what was wanted, and of what is searched in place of what they deny"
    )
    assert dict(of_sample[0].values) == {"cdn": "own"}
    assert found.read.sampled < found.read.views
    expected = {name: str(value) for name, value in INCIDENT.items()}
    assert [named(one) for one in found.suspects] == ([expected] if has_incident else [])


async def test_where_the_few_say_nothing_of_the_others_these_are_counted(postgres: Server, tmp_path: Path) -> None:
    """Of no view the time is one of the few: all are sampled by their own number, and none is missed."""

    def at(number: int) -> View:
        made = viewed(number)
        times = made.first_append_ms + np.arange(50)
        return structs.replace(made, first_append_ms=int(times[lots(times) % FEW_OF != 0][0]))

    with installed(postgres, tmp_path) as made:
        made.in_warehouse([at(number) for number in range(NOW + USUAL)])
        made.settle(FROM_MS // HOUR_MS)
        found = await suspected(made, bad_max=NOW // 24)

    assert [named(one) for one in found.suspects] == [WORSE]
    assert found.read.sampled < found.read.views


@pytest.fixture(scope="module")
def weakly_worse(postgres: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """One in ten views failed, and of one cohort in the hour two: it is near the line, and not above it."""

    def at(number: int) -> View:
        made = viewed(number)
        is_hit = number < NOW and (made.cdn, made.asn, made.player_version) == tuple(INCIDENT.values())
        return structs.replace(made, playback_failed=number % 10 < (2 if is_hit else 1))

    with installed(postgres, tmp_path_factory.mktemp("weak")) as made:
        made.in_warehouse([at(number) for number in range(NOW + USUAL)])
        made.settle(FROM_MS // HOUR_MS)
        yield made


@pytest.mark.parametrize("bad_max", [10**6, 700])
async def test_what_is_near_the_line_is_possible_with_figures_of_all_views(
    weakly_worse: Installation, bad_max: int
) -> None:
    found = await suspected(weakly_worse, bad_max=bad_max)
    condition = {"and": [{"dimension": name, "in": [str(value)]} for name, value in INCIDENT.items()]}

    assert found.suspects == []
    assert (found.read.sampled < found.read.views) == (bad_max < 10**6)
    (first, *others) = found.possible
    assert named(first) == {name: str(value) for name, value in INCIDENT.items()}
    assert all(NEAR < one.surprise <= LINE for one in found.possible)
    assert (first.figure, first.usual) == await figures(weakly_worse, condition)
    assert len(others) < POSSIBLE_MAX
    for place, one in enumerate(found.possible):
        for other in found.possible[:place]:
            in_both = {"and": [to_builtins(one.filter), to_builtins(other.filter)]}
            assert (await figures(weakly_worse, in_both))[0].n == 0
