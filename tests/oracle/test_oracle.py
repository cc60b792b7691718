"""The fold's rows are the oracle's: 2,000 generated sessions of every client; `--hypothesis-profile many` compares 20,000."""

import msgspec
import pytest
from hypothesis import settings

from shared.schemas.view import View
from tests.oracle.__main__ import report
from tests.oracle.comparison import ALLOWED, NOT_COMPARED, SKIPPED_SHARE_MAX, Tally, differences, expected_rows
from tests.oracle.sessions.viewer import CLIENTS, session

SEED = 1
CHUNKS = 10
SESSIONS = 20_000 if settings().max_examples > 1_000 else 2_000


@pytest.fixture(scope="module")
def tally() -> Tally:
    """The rows of all chunks."""
    return Tally()


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_folds_rows_are_the_oracles(chunk: int, tally: Tally) -> None:
    size = SESSIONS // CHUNKS
    found = list(differences(SEED, range(chunk * size, (chunk + 1) * size), tally))
    assert not found, f"{len(found)} views differ, the first:\n{report(found[0], SEED)}"


def test_few_rows_are_left_out_of_the_comparison(tally: Tally) -> None:
    if tally.rows < SESSIONS:
        pytest.skip("counts the rows of the chunks before it")
    assert tally.skipped.total() <= SKIPPED_SHARE_MAX * tally.rows, tally


def test_every_field_of_a_row_is_compared_or_has_a_reason() -> None:
    compared = {name for row in expected_rows(SEED, range(60)) for name in row}
    fields = {field.name for field in msgspec.structs.fields(View)}
    assert fields <= compared | NOT_COMPARED.keys()
    assert NOT_COMPARED.keys() <= fields
    assert {one.field for one in ALLOWED} <= compared


def test_the_sessions_hold_all_that_disturbs_a_view() -> None:
    sessions = [session(SEED, number) for number in range(500)]
    kinds = {moment.kind for one in sessions for play in one.plays for moment in play.moments}
    assert {"sleep", "step", "rate", "adplaying", "stall", "seek", "error", "crash"} <= kinds
    assert {one.client for one in sessions} == set(CLIENTS)
    disturbed = [
        any(one.losses for one in sessions),
        any(one.resends for one in sessions),
        any(one.disorder for one in sessions),
        any(one.spool[1] for one in sessions),
        any(len(one.plays) == 2 for one in sessions),
        any(play.live for one in sessions for play in one.plays),
    ]
    assert all(disturbed)
