"""Lots of views: the same in SQL and in numpy, and spread however the times of views are."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from services.query.core.sql.lots import IS_OF_FEW, LOT, SAMPLED_BY, lots, one_in
from shared.statistics.suspects.sampling import FEW_OF

T0_MS = 1_790_000_000_000


def test_numpy_and_sql_give_the_same_lots() -> None:
    times = np.array([0, 1, T0_MS, T0_MS + 999, (1 << 40) - 1, 1 << 40, (1 << 53) - 1, -5], np.int64)
    table = pa.table({SAMPLED_BY: times})  # noqa: F841 - the statement reads it

    found = duckdb.sql(f'SELECT {LOT} AS lot, {IS_OF_FEW} AS few FROM "table"').fetchall()

    assert [lot for lot, _ in found] == lots(times).tolist()
    assert [few for _, few in found] == (lots(times) % FEW_OF == 0).tolist()
    assert duckdb.sql(f"SELECT {IS_OF_FEW} FROM (SELECT NULL::BIGINT AS {SAMPLED_BY})").fetchall() == [(None,)]
    assert one_in(1) == "true"


@pytest.mark.parametrize("step_ms", [1, 2, 7, 8, 64, 1_000, 8_000, 60_000])
@pytest.mark.parametrize("each", [FEW_OF, 3, 112])
def test_times_in_steps_are_spread_as_any(step_ms: int, each: int) -> None:
    times = T0_MS + step_ms * np.arange(200_000, dtype=np.int64)

    assert (lots(times) % each == 0).mean() == pytest.approx(1 / each, rel=0.1)
