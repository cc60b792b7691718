"""Path templates: which paths belong to one endpoint: `/users/123` and `/users/124` are `/users/{}`. Pure.

A part of a path is data in three cases: it has the format of data (`shared.api.formats.segment_of`), a route marks it, or there are
very many like it. The last means more words than `WORDS_MAX` at one place, below the first part, with the same calls under each. A
published template stays: its words never become data later, and new words beside them are reported as words.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

#: How a part that is data is written in a template.
DATA: Final = "{}"
#: Words at one place that have the same calls under them; with more of them they are data.
WORDS_MAX: Final = 20
#: Forms of the data of one place; more are not noted.
FORMS_MAX: Final = 20


class Place(msgspec.Struct, array_like=True):
    """What may follow after one beginning of a path."""

    #: Words, and whether each is published.
    words: dict[str, bool] = {}
    #: Formats of the data seen here, such as `integer`; empty if there was no data.
    forms: list[str] = []
    #: Whether any word that is not known here is data.
    is_data: bool = False


class Paths(msgspec.Struct, array_like=True):
    """The paths of one API: places by the template of the path before them."""

    places: dict[str, Place] = {}


def bytes_of(paths: Paths) -> int:
    """The bytes of the paths as they are stored."""
    return len(msgspec.msgpack.encode(paths))


def template_of(paths: Paths, parts: list[str]) -> tuple[str, bool]:
    """The template of a path, which is noted, and whether that is new."""
    template, is_new = "", False
    for part in parts:
        place = paths.places.setdefault(template, Place())
        name, is_new_here = _name(place, part)
        template, is_new = f"{template}/{name}", is_new or is_new_here
    return template or "/", is_new


def known_template(paths: Paths, parts: list[str]) -> str:
    """The template of a path as it would be, nothing noted."""
    template = ""
    for part in parts:
        place = paths.places.get(template) or Place()
        is_word = not part.startswith("{") and (part in place.words or not place.is_data)
        template += f"/{part if is_word else DATA}"
    return template or "/"


def generalise(paths: Paths, endpoints: list[str]) -> dict[str, str]:
    """Takes words for data where there are too many of a kind; which endpoints (`GET /users/jane`) are others now."""
    for before, place in paths.places.items():
        fresh = [word for word, is_published in place.words.items() if not is_published]
        if not before or len(fresh) <= WORDS_MAX:
            continue
        kinds: dict[tuple[str, ...], list[str]] = {}
        for word in fresh:
            kinds.setdefault(_calls_under(f"{before}/{word}", endpoints), []).append(word)
        largest = max(kinds.values(), key=len)
        if len(largest) > WORDS_MAX:
            return _take_for_data(paths, before, largest, endpoints)
    return {}


def publish_template(paths: Paths, template: str) -> bool:
    """From now on the words of this template stay words; whether that is new."""
    before, is_new = "", False
    for part in template.split("/")[1:]:
        place = paths.places.get(before)
        if place is not None and part in place.words:
            is_new = is_new or not place.words[part]
            place.words[part] = True
        before += f"/{part}"
    return is_new


def prune(paths: Paths, endpoints: list[str]) -> None:
    """Forgets what none of these endpoints has in its path."""
    used: dict[str, set[str]] = {}
    for endpoint in endpoints:
        before = ""
        for part in endpoint.partition(" ")[2].split("/")[1:]:
            used.setdefault(before, set()).add(part)
            before += f"/{part}"
    paths.places = {before: place for before, place in paths.places.items() if before in used}
    for before, place in paths.places.items():
        place.words = {word: published for word, published in place.words.items() if word in used[before]}


def display_path(template: str) -> str:
    """A template with names for what is data: `/users/{id}/orders/{id2}`."""
    names = data_names(template)
    parts = [
        f"{{{next(names)}}}" if part == DATA else part.replace("{", "%7B").replace("}", "%7D")
        for part in template.split("/")
    ]
    return "/".join(parts)


def data_names(template: str) -> Iterator[str]:
    """The names of what is data in a template, in order: id, id2 …"""
    for number in range(1, template.split("/").count(DATA) + 1):
        yield "id" if number == 1 else f"id{number}"


def forms_of(paths: Paths, template: str) -> list[list[str]]:
    """The forms of each part of a template that is data, in order."""
    parts = template.split("/")[1:]
    befores = ["".join(f"/{part}" for part in parts[:number]) for number in range(len(parts))]
    return [
        paths.places[before].forms if before in paths.places else []
        for before, part in zip(befores, parts, strict=True)
        if part == DATA
    ]


def _name(place: Place, part: str) -> tuple[str, bool]:
    """The template's word for the part, and whether it is new."""
    if part.startswith("{"):
        form = part[1:-1]
        if form in place.forms or len(place.forms) >= FORMS_MAX:
            return DATA, False
        place.forms = sorted([*place.forms, form])
        # By a route every part at this place is data.
        place.is_data = place.is_data or form == "route"
        return DATA, True
    if part in place.words:
        return part, False
    if place.is_data:
        return DATA, False
    place.words[part] = False
    return part, True


def _calls_under(template: str, endpoints: list[str]) -> tuple[str, ...]:
    """The endpoints below a template, relative to it."""
    found = set()
    for endpoint in endpoints:
        method, _, path = endpoint.partition(" ")
        if path == template or path.startswith(f"{template}/"):
            found.add(f"{method} {path[len(template) :]}")
    return tuple(sorted(found))


def _take_for_data(paths: Paths, before: str, words: list[str], endpoints: list[str]) -> dict[str, str]:
    place = paths.places[before]
    place.is_data = True
    place.forms = sorted({*place.forms, "word"})
    place.words = {word: published for word, published in place.words.items() if word not in words}
    into = f"{before}/{DATA}"
    moved: dict[str, str] = {}
    for word in words:
        old = f"{before}/{word}"
        for template in [one for one in paths.places if one == old or one.startswith(f"{old}/")]:
            target = paths.places.setdefault(into + template[len(old) :], Place())
            _merge(target, paths.places.pop(template))
        for endpoint in endpoints:
            method, _, path = endpoint.partition(" ")
            if path == old or path.startswith(f"{old}/"):
                moved[endpoint] = f"{method} {into}{path[len(old) :]}"
    return moved


def _merge(place: Place, other: Place) -> None:
    for word, is_published in other.words.items():
        place.words[word] = place.words.get(word, False) or is_published
    place.forms = sorted({*place.forms, *other.forms})
    place.is_data = place.is_data or other.is_data
