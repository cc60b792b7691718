"""Strange values, and documents with some of theirs replaced by strange ones. Pure and seeded."""

import copy
from random import Random
from typing import Any, Final

_LONG: Final = "x" * 3_000
#: What breaks code that takes its input at its word: limits of numbers, wrong kinds, halves of syntax, too much of anything.
STRANGE: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 0.5, -0.5, 1e-300, 1e300, -1e300),
    *(2**31, 2**53, 2**53 + 1, -(2**53), 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 10**30),
    *(1_790_000_000_000, 1_790_086_400_001, 1_700_000_000_000, 1, 9_000_000_000_000),
    *("", " ", "0", "-1", "1e999", "NaN", "true", "null", "1790000000000", "9" * 400, "a", "p", "f", "s", "viewstart"),
    *(
        "http://[",
        "https://a/" + "b/" * 60,
        "/users/1?x=[",
        "%ff%00",
        "..",
        "\x00",
        "é" * 200,
        "\U0001f600" * 90,
        _LONG,
    ),
    *(
        "playhead-error:",
        "playhead-error:" + _LONG,
        '["0:5"]',
        "[",
        '{"a":',
        "text/html",
        "GET",
        "\r\nX: y",
        "a:b",
        "a,b;c=d",
    ),
    *([], {}, [[]], [None], [1, 2, 3], ["v"], [[1, "v"]], [[-1, "v"], ["x", None]], {"a": {"b": {"c": 1}}}, {"": ""}),
    *([0] * 300, {f"k{number}": number for number in range(120)}, [[[[[1]]]]], [{"a": 1}, {"a": "x"}, {"b": []}]),
)


def mutated(rng: Random, document: Any, times: int) -> Any:
    """The document with up to `times` of its values replaced, doubled, removed or renamed."""
    document = copy.deepcopy(document)
    for _ in range(times):
        places = list(_places(document))
        if not places:
            return rng.choice(STRANGE)
        _change(rng, *rng.choice(places))
    return document


def _places(document: Any) -> list[tuple[Any, Any]]:
    """Every container with every key in it."""
    found: list[tuple[Any, Any]] = []
    waiting = [document]
    while waiting and len(found) < 400:
        one = waiting.pop()
        keys: Any = one.keys() if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            waiting.append(one[key])
    return found


def _change(rng: Random, container: Any, key: Any) -> None:
    match rng.random():
        case chance if chance < 0.7:
            container[key] = copy.deepcopy(rng.choice(STRANGE))
        case chance if chance < 0.8:
            del container[key]
        case chance if chance < 0.9 and isinstance(container, dict):
            container[rng.choice(("", "a", "x" * 90, str(key) + "_", "__proto__", "custom_1"))] = container[key]
        case chance if isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        case chance:
            container[key] = [container[key]] * rng.choice((1, 2, 3))
