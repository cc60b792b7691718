"""The threshold of a question for suspects that names none: where the worst of the usual values begin."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from services.query.answering import Views
from services.query.core.question import Question
from services.query.core.suspects import statements
from services.query.core.suspects.measured import Threshold
from services.query.core.suspects.question import SuspectsQuestion
from services.query.core.suspects.values import Value
from services.query.rim.threads import both

#: So many values say where a rank is within a fifth of a percent of the views: an exact one of ten million takes half a second.
VALUES_MAX: Final = 100_000


async def with_threshold(question: SuspectsQuestion, views: Sequence[Views]) -> SuspectsQuestion:
    """The same with a threshold, of the views of its range and of its baseline; without one where none has a value.

    What is usual says it. Where cohorts are held against the rest of the range, the range does.
    """
    value, pending = question.measured.of_value, question.measured.threshold
    assert value is not None
    assert pending is not None
    now, usual = await both(*(_known(one, side, value) for one, side in zip(views, question.sides, strict=True)))
    if not now and not usual:
        return question
    is_usual = usual > 0 and question.held_against(now, usual) == "usual"
    place, known = (1, usual) if is_usual else (0, now)
    side = question.sides[place]
    asked = partial(statements.ranked, side, value, known // VALUES_MAX + 1)
    (found,) = await views[place].rows(asked)
    at = found["ranked"]
    # Nothing is below 0: where the worst tenth has the lowest value of all, it is below the next one.
    if pending.side == "below" and not at:
        at = found["least"] or 0.0
    return question.with_threshold(Threshold(pending.side, at, pending.unit, "usual" if is_usual else "range"))


async def _known(views: Views, side: Question, value: Value) -> int:
    (found,) = await views.rows(partial(statements.known, side, value))
    return int(found["known"])
