"""The threshold of a question for suspects that names none: where the worst of the usual values begin."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import structs

from services.query.core.question import Question
from services.query.core.suspects import statements
from services.query.core.suspects.measured import Origin, Threshold
from services.query.core.suspects.question import SuspectsQuestion
from services.query.core.suspects.values import Value
from services.query.reading import Views
from services.rim.turns.thread_work import both
from shared.statistics.suspects.sampling import FEW_OF, one_of

#: So many values say where a rank is within a fifth of a percent of the views: an exact one of ten million takes half a second.
VALUES_MAX: Final = 100_000
#: Of fewer bad views than this share nobody could say that they have become more.
_FEW: Final = 0.005
#: A value of fewer views changes nothing.
_MANY: Final = 0.02


async def with_threshold(question: SuspectsQuestion, views: Sequence[Views]) -> SuspectsQuestion:
    """The same with a threshold, of the views of its range and of its baseline; without one where none has a value.

    What is usual says it. Where cohorts are compared with the rest of the range, the range does.
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
    each = one_of(known, VALUES_MAX)
    looked_at = views[place] if each % FEW_OF else views[place].few
    (found,) = await looked_at.rows(partial(statements.ranked, side, value, pending.side, each))
    origin: Origin = "usual" if is_usual else "range"
    threshold = Threshold(pending.side, found["ranked"], pending.unit, origin)
    if found["better"] is not None and await _includes(found, value, threshold, question.sides[0], views[0]):
        threshold = structs.replace(threshold, value=found["better"])
    return question.with_threshold(threshold)


async def _includes(found: Mapping[str, Any], value: Value, threshold: Threshold, now: Question, views: Views) -> bool:
    """Whether views that equal the threshold are bad, too, so that it is the next better value.

    Many views may have one value, such as the lowest rung of a ladder. They are bad if that is nearer to the rank; and if else
    hardly any view is, neither usually nor now.
    """
    assert value.rank is not None
    if found["beyond_better"] - found["beyond"] < _MANY:
        return False
    wanted = value.rank if threshold.side == "below" else 1 - value.rank
    if abs(found["beyond_better"] - wanted) < abs(found["beyond"] - wanted):
        return True
    if found["beyond"] >= _FEW:
        return False
    (share,) = await views.rows(partial(statements.share_beyond, now, value, threshold))
    return (share["beyond"] or 0) < _FEW


async def _known(views: Views, side: Question, value: Value) -> int:
    (found,) = await views.rows(partial(statements.known, side, value))
    return int(found["known"])
