"""Answers a question for suspects: a bounded sample of two ranges' views is searched, then all views give the figures."""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from services.query.answering import Answering, about_views
from services.query.core.filters import Filter
from services.query.core.question import Question
from services.query.core.suspects import answer as answers
from services.query.core.suspects import statements
from services.query.core.suspects.answer import Suspects
from services.query.core.suspects.measured import Measured, read_with
from services.query.core.suspects.question import SUSPECTS_MAX, SuspectsQuestion
from services.query.reading import Read, Views
from services.query.rim.engine import CALLER
from services.query.rim.marks import COHORTS_MAX
from services.query.thresholds import with_threshold
from services.rim.turns.fair_turns import FairTurns
from services.rim.turns.thread_work import both, until_over
from shared.statistics.suspects.counts import Counts, Floats, Places, beside_rest, clump, numbered
from shared.statistics.suspects.sampling import BAD_MAX, FEW_OF, GOOD_MAX, Sampling, sampling
from shared.statistics.suspects.search import NEAR_MAX, Search
from shared.statistics.suspects.suspect import POSSIBLE_MAX, Searched, confirmed, possible

assert SUSPECTS_MAX + NEAR_MAX <= COHORTS_MAX
#: Where the few say that a range has at most `GOOD_MAX` rows, it may have so many times more.
_TOLERANCE: Final = 2
#: Ranges whose rows are kept.
_KEPT_MAX: Final = 32
#: A row of `statements.figures`.
Figures = dict[str, Any]
#: A view counts as at most this quantile of those with events: one view of hours is no cohort.
_LARGEST: Final = 0.995


@dataclass(frozen=True)
class Sample:
    """Views of a range with events or exposure, by the values of its dimensions."""

    table: pa.Table
    events: Floats
    exposure: Floats
    #: For how many views one without events stands: `Sampling.weight`.
    weight: float
    #: About how many views there are in all.
    views: int
    #: The rows of all views of the range, those without events and exposure too; or what has them, where they are too many.
    whole: pa.Table | Views

    @property
    def is_of_all(self) -> bool:
        """Whether no view was left out."""
        return isinstance(self.whole, pa.Table)


class Suspecting:
    """Finds suspects, one question at a time: what it holds is bounded. Organisations take turns, and the callers of each.

    A person looks at several metrics of one range, and the page asks for three at once. So a range that is no sample is read for
    all ratios of sums, and its rows are kept for the next questions.
    """

    def __init__(self, answering: Answering, *, bad_max: int = BAD_MAX, good_max: int = GOOD_MAX) -> None:
        self._answering = answering
        self._bad_max = bad_max
        self._good_max = good_max
        self._turns = FairTurns(1, of_one=1)
        #: By question, statement and what was read; the last one last. Some 160 B a row.
        self._kept: OrderedDict[tuple[Any, ...], pa.Table] = OrderedDict()

    @property
    def ranges_kept(self) -> int:
        """Ranges whose rows are in memory."""
        return len(self._kept)

    async def suspects(self, question: SuspectsQuestion) -> Suspects:
        """The answer. Raises what `Answering` raises."""
        async with self._turns.turn(*CALLER.get()):
            reads = [await self._answering.reading(side) for side in question.sides]
            whole: Sequence[Views | None] = (None, None)
            if question.needs_threshold:
                views = await both(*map(self._answering.views, question.sides, reads))
                question, whole = await with_threshold(question, views), views
            samples = await both(*map(partial(self._sample, question.measured), question.sides, reads, whole))
            question = replace(question, against=question.held_against(*(sample.views for sample in samples)))
            # The search cuts the largest values of a sum, the figures of all views do not: they would confirm one view of hours.
            is_confirmed = question.measured.is_count and not all(sample.is_of_all for sample in samples)
            outcome = await self._outcome(question, samples, is_confirmed=is_confirmed)
        counted = sum(int(side["counted"]) for side in outcome.rows)
        read = answers.Looked(counted, sum(sample.table.num_rows for sample in samples))
        return answers.composed(question, outcome, read, about_views(question.now, reads[0]))

    async def _outcome(
        self, question: SuspectsQuestion, samples: Sequence[Sample], *, is_confirmed: bool
    ) -> answers.Outcome:
        """What is found in samples and judged by all views."""
        search = _Searching(question, samples)
        # DuckDB has nothing else to do while Python searches.
        found, of_all = await both(
            until_over(search.until, question.limit), both(*map(partial(_of_all, question), question.sides, samples))
        )
        outcome = await self._judged(question, samples, of_all, found, is_confirmed=is_confirmed)
        has_all = len(outcome.places) >= question.limit or not question.limit <= len(found.found) < SUSPECTS_MAX
        if has_all or not is_confirmed:
            return outcome
        # What all views do not confirm takes no other's place.
        found = await until_over(search.until, SUSPECTS_MAX)
        return await self._judged(question, samples, of_all, found, is_confirmed=is_confirmed)

    async def _judged(
        self,
        question: SuspectsQuestion,
        samples: Sequence[Sample],
        of_all: Sequence[Figures | None],
        found: Searched,
        *,
        is_confirmed: bool,
    ) -> answers.Outcome:
        """What was found, with the figures of all views; of a sample's counts only what they confirm."""
        counted, marked = found, answers.cohorts_of(found)
        now, usual = await both(
            *(
                self._figures(question.measured, *one, marked)
                for one in zip(question.sides, samples, of_all, strict=True)
            )
        )
        while True:
            # What is counted again is the same cohorts in another order: their views were read once.
            order, left_out = found.places_in(counted), answers.left_out_of(found)
            sides = [statements.reordered(side, order) for side in (now, usual)]
            rows = statements.figures_by_cohort(sides[0], left_out), statements.figures_by_cohort(sides[1], left_out)
            together = statements.together(sides[0], left_out)
            said = answers.said_of(question, found, rows)
            places = confirmed(found, said, together) if is_confirmed else [*range(len(found.found))]
            # Each time more is denied.
            again = found.to_be_counted_again(places)
            if again is None:
                most = min(POSSIBLE_MAX, max(0, question.limit - len(places)))
                near = possible(found, said, places, together, most)
                return answers.Outcome(found, rows, said, places[: question.limit], near)
            found = again

    async def _sample(self, measured: Measured, question: Question, read: Read, whole: Views | None = None) -> Sample:
        """The views of a range that are searched; `whole` has all of them, if they were looked at before."""
        measures, most = read_with(measured), _TOLERANCE * self._good_max
        asked = statements.rows(question, measures, most + 1)
        key = (question, asked.sql, asked.parameters, read.snapshot.version, read.hot.identity)
        if key not in self._kept:
            if (sample := await self._sampled(measured, measured.alone(question), read, whole)) is not None:
                return sample
            # From files: of many rows these are few.
            views = self._answering.views_of_files(question, read)
            rows = await views.table(lambda _: asked)
            if rows.num_rows > most:
                # The few say nothing of these: all are counted.
                sample = await self._sampled(measured, measured.alone(question), read, whole, each=1)
                assert sample is not None
                return sample
            self._keep(key, _encoded(rows, len(question.by)))
        self._kept.move_to_end(key)
        return _whole(_of_metric(self._kept[key], len(question.by), measured, measures))

    async def _sampled(
        self, measured: Measured, question: Question, read: Read, whole: Views | None, each: int = FEW_OF
    ) -> Sample | None:
        """A sample; None where there are few rows, by one in `each` of them."""
        # The files hold others' views too.
        if sum(file.rows for file in read.files) + read.hot.rows.num_rows <= self._good_max:
            return None
        views = whole or await self._answering.views(question, read)
        counted = views.few if each == FEW_OF else views
        (totals,) = (await counted.table(partial(statements.totals, question, measured, each))).to_pylist()
        if totals["rows"] <= self._good_max:
            return None
        how = sampling(totals["views"], totals["bad"], bad_max=self._bad_max, good_max=self._good_max)
        chosen = await _chosen(views, question, measured, how)
        table = _encoded(await chosen.table(partial(statements.sampled, question, measured, how)), len(question.by))
        events, exposure = _numbers(table)
        return Sample(table, events, how.exposure(events, exposure), how.weight, totals["views"], views)

    def _keep(self, key: tuple[Any, ...], rows: pa.Table) -> None:
        """Keeps rows, and of those before as many as have room beside them: a table without rows takes room too."""
        self._kept[key] = rows
        while len(self._kept) > 1 and (
            len(self._kept) > _KEPT_MAX or sum(table.num_rows for table in self._kept.values()) > 2 * self._good_max
        ):
            self._kept.popitem(last=False)

    async def _figures(
        self, measured: Measured, side: Question, sample: Sample, of_all: Figures | None, marked: Sequence[Filter]
    ) -> list[Figures]:
        """The rows of `statements.figures`; a bit a cohort. Of all views, whether they are in the sample or not."""
        if not isinstance(sample.whole, Views):
            whole = {"found": sample.whole}
            found: list[Figures] = (
                await self._answering.table_of(whole, statements.figures_of_rows(side, marked))
            ).to_pylist()
            return found
        alone = measured.alone(side)
        if of_all is None:
            return await sample.whole.rows(lambda _: statements.figures(alone, measured, marked))
        of_marked = partial(statements.figures_of_marked, alone, measured)
        return statements.beside_others(await sample.whole.marked(of_marked, marked) if marked else [], of_all)


async def _of_all(question: SuspectsQuestion, side: Question, sample: Sample) -> Figures | None:
    """The figures of all views; None where views are not in memory: `statements.figures` says all then."""
    if not isinstance(sample.whole, Views) or not sample.whole.are_in_memory:
        return None
    asked = partial(statements.figures_of_all, question.measured.alone(side), question.measured)
    (found,) = await sample.whole.rows(asked)
    return found


async def _chosen(views: Views, question: Question, measured: Measured, how: Sampling) -> Views:
    """Views among which are all of a sample. A statement for places reads few columns of all views, and all columns of few."""
    places = partial(statements.places, question, measured, how)
    if how.good_of % FEW_OF:
        return await views.only(places)
    few = await views.few.only(places)
    if how.bad_of % FEW_OF == 0:
        return few
    return await views.with_others(partial(statements.places_beside_few, question, measured, how), few)


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
    return Sample(table, events[counting], exposure[counting], 0.0, table.num_rows, rows)


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


class _Searching:
    """The search of two samples, which begins and goes on on a thread."""

    def __init__(self, question: SuspectsQuestion, samples: Sequence[Sample]) -> None:
        self._question = question
        self._samples = samples
        self._search: Search | None = None

    def until(self, limit: int) -> Searched:
        """As `Search.until`."""
        if self._search is None:
            found = counts(self._question, *self._samples)
            self._search = Search(beside_rest(found) if self._question.against == "rest" else found)
        return self._search.until(limit)


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
        # The exposure of a sum is another one in each view.
        sampled=(now.weight, usual.weight) if question.measured.is_count else (0.0, 0.0),
    )


def _together(sides: Sequence[pa.ChunkedArray]) -> tuple[list[str | None], list[Places]]:
    """The values of encoded columns, the unknown one last, and the number of each row's value."""
    whole = pa.chunked_array([chunk for side in sides for chunk in side.chunks], sides[0].type).unify_dictionaries()
    known = whole.chunk(0).dictionary.to_pylist() if whole.num_chunks else []
    numbers = [chunk.indices.fill_null(len(known)).to_numpy() for chunk in whole.chunks]
    places = np.concatenate([np.zeros(0, np.int32), *numbers])
    return [*known, None], np.split(places, [len(sides[0])])
