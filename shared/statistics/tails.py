"""The probability of so large a count if nothing has changed: exact predictive distributions of counts. Pure arithmetic.

Sources: A. Gelman and others, Bayesian Data Analysis (3rd ed., 2013), chapter 2, and H. Jeffreys' priors. If a rate is only known
from past counts, the next count is beta-binomial (of a number of calls) or negative binomial (in a stretch of time).
"""

from collections.abc import Callable
from math import exp, lgamma, log
from typing import Final

#: A term so much smaller than the sum ends it; so do so many terms.
_NEGLIGIBLE: Final = 1e-9
_TERMS_MAX: Final = 100_000
#: Less correlation than this is treated as none; more keeps the logarithms of the gamma function exact enough.
_CORRELATION_MIN: Final = 1e-7


def share_at_least(hits: int, of: int, *, past_hits: int, past_of: int, trust: float) -> float:
    """The probability that of `of` calls at least `hits` are hits, as of `past_of` calls `past_hits` were.

    The past counts for at most `trust` calls: no rate is steadier than that many calls can show. 1 if `hits` is no more than
    expected.
    """
    a, b = past_hits + 0.5, past_of - past_hits + 0.5
    if a + b > trust:
        a, b = a * trust / (a + b), b * trust / (a + b)
    return share_tail(hits, of, a, b)


def share_tail(hits: int, of: int, a: float, b: float) -> float:
    """The probability of at least `hits` of `of`, of a beta-binomial. 1 where `hits` is no more than expected."""
    if hits <= of * a / (a + b):
        return 1.0
    first = (
        _log_choose(of, hits)
        + _log_beta(hits + a, of - hits + b)
        - _log_beta(a, b)
    )  # fmt: skip
    return _tail(first, hits, of, lambda i: (of - i) / (i + 1) * (i + a) / (of - i - 1 + b))


def dispersed_share_at_least(hits: int, of: int, *, share: float, dispersion: float) -> float:
    """The probability of at least `hits` of `of` where `share` is usual, and counts vary `dispersion` times as much as by chance.

    A beta-binomial whose variance is `dispersion` (1 or more) times the binomial's of the same `of`.
    """
    if of < 2:
        return 1.0
    correlation = max(min((dispersion - 1) / (of - 1), 1 - _NEGLIGIBLE), _CORRELATION_MIN)
    together = 1 / correlation - 1
    return share_tail(hits, of, share * together, (1 - share) * together)


def dispersed_count_beyond(count: int, *, expected: float, dispersion: float) -> float:
    """The probability of a count as far, or farther, on its side of `expected`.

    A negative binomial whose variance is `dispersion` (more than 1) times the Poisson's.
    """
    rate = 1 / max(dispersion - 1, _CORRELATION_MIN)
    return count_tail(count, expected * rate, rate)


def count_beyond(count: int, *, past: int, windows: int, trust: float) -> float:
    """The probability of a count as far, or farther, on its side of what is expected after `past` in so many windows.

    `trust` is how many events the past may count for at the most.
    """
    shape, rate = past + 0.5, float(windows)
    if shape > trust:
        shape, rate = trust, rate * trust / shape
    return count_tail(count, shape, rate)


def count_tail(count: int, shape: float, rate: float) -> float:
    """The probability of a count as far, or farther, on its side of shape / rate, of a negative binomial."""
    p = rate / (rate + 1)
    first = lgamma(count + shape) - lgamma(count + 1) - lgamma(shape) + shape * log(p) + count * log(1 - p)
    if count > shape / rate:
        return _tail(first, count, count + _TERMS_MAX, lambda i: (i + shape) / (i + 1) * (1 - p))
    return _tail(first, 0, count, lambda i: (count - i) / ((count - i - 1 + shape) * (1 - p)))


def _tail(log_first: float, first: int, last: int, ratio: Callable[[int], float]) -> float:
    """The sum of terms `first` to `last`; `ratio(i)` is that of the one after i to it, and falls."""
    term = total = exp(log_first)
    for i in range(first, min(last, first + _TERMS_MAX)):
        term *= ratio(i)
        total += term
        if term <= total * _NEGLIGIBLE:
            break
    return min(total, 1.0)


def _log_choose(n: int, k: int) -> float:
    return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)


def _log_beta(a: float, b: float) -> float:
    return lgamma(a) + lgamma(b) - lgamma(a + b)
