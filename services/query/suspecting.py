"""Answers a question for suspects: a bounded sample of two ranges' views is searched, then all views give the figures."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from services.query.answering import Answering, Read, about_views
from services.query.core.filters import Filter
from services.query.core.question import Question
from services.query.core.suspects import answer as answers
from services.query.core.suspects import statements
from services.query.core.suspects.answer import Suspects
from services.query.core.suspects.measured import Measured
from services.query.core.suspects.question import SuspectsQuestion
from shared.statistics.suspects.counts import Counts, Floats, beside_rest, clump, numbered
from shared.statistics.suspects.search import Suspect, suspects

#: Views of a range that are searched: with events, and others. More are sampled.
BAD_MAX: Final = 100_000
GOOD_MAX: Final = 120_000
#: A view counts as at most this quantile of those with events: one view of hours is no cohort.
_LARGEST: Final = 0.995


@dataclass(frozen=True)
class Sample:
    """Views of a range with events or exposure, by the values of its dimensions."""

    table: pa.Table
    events: Floats
    exposure: Floats
    #: How many views there are in all.
    views: int
    #: The rows of all views of the range, those without events and exposure too; None where they are too many to be read.
    rows: pa.Table | None


class Suspecting:
    """Finds suspects, one question at a time: what it holds is bounded."""

    def __init__(self, answering: Answering, *, bad_max: int = BAD_MAX, good_max: int = GOOD_MAX) -> None:
        self._answering = answering
        self._bad_max = bad_max
        self._good_max = good_max
        self._one = asyncio.Semaphore(1)

    async def suspects(self, question: SuspectsQuestion) -> Suspects:
        """The answer. Raises what `Answering` raises."""
        async with self._one:
            reads = [await self._answering.reading(side) for side in (question.now, question.usual)]
            samples = [await self._sample(question.measured, *of) for of in _sides(question, reads)]
            question = replace(question, against=question.held_against(*(sample.views for sample in samples)))
            found = await asyncio.to_thread(_searched, question, *samples)
            selecting = answers.filters_of(found)
            figures = [
                await self._figures(question.measured, *of, sample, selecting)
                for of, sample in zip(_sides(question, reads), samples, strict=True)
            ]
        read = answers.Looked(sum(sample.views for sample in samples), sum(sample.table.num_rows for sample in samples))
        return answers.composed(question, found, (figures[0], figures[1]), read, about_views(question.now, reads[0]))

    async def _sample(self, measured: Measured, question: Question, read: Read) -> Sample:
        totals = await self._totals(measured, question, read)
        if totals is None or totals["rows"] <= self._good_max:
            return _whole(await self._answering.table(question, read, statements.rows(question, measured)))
        bad_of = max(1, -(-totals["bad"] // self._bad_max))
        good_of = max(bad_of, -(-totals["views"] // self._good_max))
        statement = statements.sampled(question, measured, bad_of=bad_of, good_of=good_of)
        table = await self._answering.table(question, read, statement)
        events, exposure = _numbers(table)
        # A view without events stands for more views than one with: exposure is that of as many as the events are of.
        exposure = np.where(events > 0, exposure, exposure * (good_of / bad_of))
        return Sample(table, events, exposure, totals["views"], None)

    async def _totals(self, measured: Measured, question: Question, read: Read) -> dict[str, int] | None:
        """As `statements.totals`; None where the files, which hold others' views too, have few rows already."""
        if sum(file.rows for file in read.files) + read.hot.rows.num_rows <= self._good_max:
            return None
        (totals,) = (await self._answering.table(question, read, statements.totals(question, measured))).to_pylist()
        return totals  # type: ignore[no-any-return]

    async def _figures(
        self, measured: Measured, side: Question, read: Read, sample: Sample, cohorts: Sequence[Filter]
    ) -> answers.Row:
        """Of all views, those of the sample or not."""
        if sample.rows is None:
            table = await self._answering.table(side, read, statements.figures(side, measured, cohorts))
        else:
            table = await self._answering.table_of({"found": sample.rows}, statements.figures_of_rows(side, cohorts))
        (row,) = table.to_pylist()
        return row  # type: ignore[no-any-return]


def _whole(rows: pa.Table) -> Sample:
    events, exposure = _numbers(rows)
    counting = (events > 0) | (exposure > 0)
    table = rows.filter(pa.array(counting))
    return Sample(table, events[counting], exposure[counting], table.num_rows, rows)


def _numbers(table: pa.Table) -> tuple[Floats, Floats]:
    return table["events"].to_numpy(), table["exposure"].to_numpy()


def _sides(question: SuspectsQuestion, reads: list[Read]) -> list[tuple[Question, Read]]:
    return list(zip((question.now, question.usual), reads, strict=True))


def _searched(question: SuspectsQuestion, now: Sample, usual: Sample) -> list[Suspect]:
    found = counts(question, now, usual)
    return suspects(beside_rest(found) if question.against == "rest" else found, limit=question.limit)


def counts(question: SuspectsQuestion, now: Sample, usual: Sample) -> Counts:
    """What is searched, of two samples."""
    event = 1.0
    if not question.measured.is_count:
        both = np.concatenate([now.events, usual.events])
        if np.any(both):
            most = float(np.quantile(both[both > 0], _LARGEST))
            now, usual = (replace(one, events=np.minimum(one.events, most)) for one in (now, usual))
            event = clump(np.minimum(both, most))
    values: list[list[str | None]] = []
    lines: tuple[list[Any], list[Any]] = ([], [])
    for number in range(len(question.now.by)):
        column = pa.chunked_array([*now.table[f"d{number}"].chunks, *usual.table[f"d{number}"].chunks], pa.string())
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        codes = encoded.indices.to_numpy().astype(np.int64)
        values.append(encoded.dictionary.to_pylist())
        lines[0].append(codes[: now.table.num_rows])
        lines[1].append(codes[now.table.num_rows :])
    return numbered(
        tuple(one.name for one in question.now.by),
        values,
        lines,
        (now.events, now.exposure),
        (usual.events, usual.exposure),
        event=event,
    )
