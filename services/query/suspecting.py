"""Answers a question for suspects: a bounded sample of two ranges' views is searched, then all views give the figures."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa

from services.query.answering import Answering, Read, about_views
from services.query.core.question import Question
from services.query.core.suspects import answer as answers
from services.query.core.suspects import statements
from services.query.core.suspects.answer import Suspects
from services.query.core.suspects.measured import Measured, read_with
from services.query.core.suspects.question import SUSPECTS_MAX, SuspectsQuestion
from shared.statistics.suspects.counts import Counts, Floats, Places, beside_rest, clump, numbered
from shared.statistics.suspects.sampling import BAD_MAX, GOOD_MAX, sampling
from shared.statistics.suspects.search import searched
from shared.statistics.suspects.suspect import Searched, confirmed

P = ParamSpec("P")
T = TypeVar("T")

#: Ranges whose rows are kept.
_KEPT_MAX: Final = 32
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
    """Finds suspects, one question at a time: what it holds is bounded.

    A person looks at several metrics of one range, and the page asks for three at once. So a range that is no sample is read for
    all ratios of sums, and its rows are kept for the next questions.
    """

    def __init__(self, answering: Answering, *, bad_max: int = BAD_MAX, good_max: int = GOOD_MAX) -> None:
        self._answering = answering
        self._bad_max = bad_max
        self._good_max = good_max
        self._one = asyncio.Semaphore(1)
        #: By question, its parameters and what was read; the last one last. Some 160 B a row.
        self._kept: OrderedDict[tuple[Any, ...], pa.Table] = OrderedDict()

    @property
    def ranges_kept(self) -> int:
        """Ranges whose rows are in memory."""
        return len(self._kept)

    async def suspects(self, question: SuspectsQuestion) -> Suspects:
        """The answer. Raises what `Answering` raises."""
        async with self._one:
            reads = [await self._answering.reading(side) for side in (question.now, question.usual)]
            samples = await both(*(self._sample(question.measured, *of) for of in _sides(question, reads)))
            question = replace(question, against=question.held_against(*(sample.views for sample in samples)))
            # The search cuts the largest values of a sum, the figures of all views do not: they would confirm one view of hours.
            is_confirmed = question.measured.is_count and any(sample.rows is None for sample in samples)
            # What all views do not confirm takes no other's place.
            limit = SUSPECTS_MAX if is_confirmed else question.limit
            found = await until_over(_searched, question, limit, *samples)
            found = found if is_confirmed else Searched(found.found, [])
            outcome = await self._judged(question, reads, samples, found, is_confirmed=is_confirmed)
        read = answers.Looked(sum(sample.views for sample in samples), sum(sample.table.num_rows for sample in samples))
        return answers.composed(question, outcome, read, about_views(question.now, reads[0]))

    async def _judged(
        self,
        question: SuspectsQuestion,
        reads: list[Read],
        samples: list[Sample],
        found: Searched,
        *,
        is_confirmed: bool,
    ) -> answers.Outcome:
        """What was found, with the figures of all views; of a sample's counts only what they confirm."""
        while True:
            rows = await self._figures_of_both(question, reads, samples, found)
            said = answers.said_of(question, found, rows)
            places = confirmed(found, said) if is_confirmed else [*range(len(found.found))]
            # Each time there are fewer.
            again = found.to_be_counted_again(places)
            if again is None:
                return answers.Outcome(found, rows, said, places[: question.limit])
            found = again

    async def _figures_of_both(
        self, question: SuspectsQuestion, reads: list[Read], samples: list[Sample], found: Searched
    ) -> answers.Rows:
        marked, left_out = answers.cohorts_of(found), answers.left_out_of(found)
        tables = await both(
            *(
                self._figures(question.measured, replace(side, marked=marked), read, sample)
                for (side, read), sample in zip(_sides(question, reads), samples, strict=True)
            )
        )
        now, usual = (statements.figures_by_cohort(table.to_pylist(), left_out) for table in tables)
        return now, usual

    async def _sample(self, measured: Measured, question: Question, read: Read) -> Sample:
        measures = read_with(measured)
        key = (question, measured.parameters, read.snapshot.version, read.hot.identity)
        if key not in self._kept:
            alone = measured.alone(question)
            totals = await self._totals(measured, alone, read)
            if totals is not None and totals["rows"] > self._good_max:
                return await self._sampled(measured, alone, read, totals)
            rows = await self._answering.table_of_files(question, read, statements.rows(question, measures))
            self._keep(key, _encoded(rows, len(question.by)))
        self._kept.move_to_end(key)
        return _whole(_of_metric(self._kept[key], len(question.by), measured, measures))

    async def _sampled(self, measured: Measured, question: Question, read: Read, totals: dict[str, int]) -> Sample:
        how = sampling(totals["views"], totals["bad"], bad_max=self._bad_max, good_max=self._good_max)
        asked = partial(statements.sampled, question, measured, how)
        table = _encoded(await self._answering.table(question, read, asked), len(question.by))
        events, exposure = _numbers(table)
        exposure = how.exposure(events, exposure)
        return Sample(table, events, exposure, totals["views"], None)

    def _keep(self, key: tuple[Any, ...], rows: pa.Table) -> None:
        """Keeps rows, and of those before as many as have room beside them: a table without rows takes room too."""
        self._kept[key] = rows
        while len(self._kept) > 1 and (
            len(self._kept) > _KEPT_MAX or sum(table.num_rows for table in self._kept.values()) > 2 * self._good_max
        ):
            self._kept.popitem(last=False)

    async def _totals(self, measured: Measured, question: Question, read: Read) -> dict[str, int] | None:
        """As `statements.totals`; None where the files, which hold others' views too, have few rows already."""
        if sum(file.rows for file in read.files) + read.hot.rows.num_rows <= self._good_max:
            return None
        asked = partial(statements.totals, question, measured)
        (totals,) = (await self._answering.table(question, read, asked)).to_pylist()
        return totals  # type: ignore[no-any-return]

    async def _figures(self, measured: Measured, side: Question, read: Read, sample: Sample) -> pa.Table:
        """The figures of all views, whether they are in the sample or not."""
        if sample.rows is not None:
            return await self._answering.table_of({"found": sample.rows}, statements.figures_of_rows(side))
        side = measured.alone(side)
        return await self._answering.table(side, read, partial(statements.figures, side, measured))


async def both(first: Coroutine[Any, Any, T], second: Coroutine[Any, Any, T]) -> list[T]:
    """The results of both, which run at the same time. If one fails, the other is stopped before its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one) for one in (first, second)]
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


async def until_over(search: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Runs `search` on a thread. A caller that is cancelled leaves when it is over.

    A thread cannot be stopped. So what its caller holds, such as the one turn of searches, is held until then.
    """
    running = asyncio.ensure_future(asyncio.to_thread(search, *given, **named))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise


def _of_metric(rows: pa.Table, dimensions: int, measured: Measured, measures: Sequence[Measured]) -> pa.Table:
    """The dimensions of rows with several metrics, and one metric's events, exposure and base."""
    columns = statements.columns_of(measures)
    wanted = {"events": measured.events, "exposure": measured.exposure, "is_base": measured.base}
    values = {name: rows[name] for name in rows.column_names[:dimensions]}
    return pa.table(values | {name: rows[columns[expression]] for name, expression in wanted.items()})


def _whole(rows: pa.Table) -> Sample:
    events, exposure = _numbers(rows)
    counting = (events > 0) | (exposure > 0)
    table = rows.filter(pa.array(counting))
    return Sample(table, events[counting], exposure[counting], table.num_rows, rows)


def _encoded(table: pa.Table, dimensions: int) -> pa.Table:
    """The values of dimensions as numbers: a tenth of the bytes."""
    for place in range(dimensions):
        column = table.column(place)
        encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
        table = table.set_column(place, table.field(place).name, encoded)
    return table


def _numbers(table: pa.Table) -> tuple[Floats, Floats]:
    events, exposure = (table[name].cast(pa.float64()).to_numpy() for name in ("events", "exposure"))
    return events, exposure


def _sides(question: SuspectsQuestion, reads: list[Read]) -> list[tuple[Question, Read]]:
    return list(zip((question.now, question.usual), reads, strict=True))


def _searched(question: SuspectsQuestion, limit: int, now: Sample, usual: Sample) -> Searched:
    found = counts(question, now, usual)
    return searched(beside_rest(found) if question.against == "rest" else found, limit=limit)


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
    lines: tuple[list[Places], list[Places]] = ([], [])
    for number in range(len(question.now.by)):
        sides = [one.table.column(number) for one in (now, usual)]
        known, codes = _together(sides)
        values.append(known)
        for line, of_side in zip(lines, codes, strict=True):
            line.append(of_side)
    return numbered(
        tuple(one.name for one in question.now.by),
        values,
        lines,
        (now.events, now.exposure),
        (usual.events, usual.exposure),
        event=event,
    )


def _together(sides: Sequence[pa.ChunkedArray]) -> tuple[list[str | None], list[Places]]:
    """The values of encoded columns, the unknown one last, and the number of each row's value."""
    whole = pa.chunked_array([chunk for side in sides for chunk in side.chunks], sides[0].type).unify_dictionaries()
    known = whole.chunk(0).dictionary.to_pylist() if whole.num_chunks else []
    numbers = [chunk.indices.fill_null(len(known)).to_numpy() for chunk in whole.chunks]
    places = np.concatenate([np.zeros(0, np.int32), *numbers])
    return [*known, None], np.split(places, [len(sides[0])])
