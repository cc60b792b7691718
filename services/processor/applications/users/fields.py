"""Fields: checks the fields of a user that a client sends; every error names its field."""

import re
from typing import Any, Final, NamedTuple

import msgspec

from services.processor.applications.users.problems import RequestRefused, invalid
from shared.codec import NO_JSON
from shared.http.problems import Fault, Problem

EMAIL_CHARS_MAX: Final = 254
NAME_CHARS_MAX: Final = 200
ATTRIBUTES_MAX: Final = 16
ATTRIBUTE_NAME_CHARS_MAX: Final = 64
ATTRIBUTE_CHARS_MAX: Final = 256

#: An address as a browser's `<input type=email>` takes it (HTML Living Standard, "valid e-mail address"), which is ASCII alone.
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
EMAIL_PATTERN: Final = rf"^[a-zA-Z0-9.!#$%&'*+/=?^_`{{|}}~-]+@{_LABEL}(?:\.{_LABEL})*$"
_EMAIL: Final = re.compile(EMAIL_PATTERN)

_NAMES: Final = ("email", "name", "attributes")


class Fields(NamedTuple):
    """The fields of a user as its client sends them."""

    email: str
    name: str
    attributes: dict[str, str]


class Changes(NamedTuple):
    """The values of a merge patch: None for an absent field; attributes that are None are removed."""

    email: str | None
    name: str | None
    attributes: dict[str, str | None]
    drops_attributes: bool


def email_key(email: str) -> str:
    """The address as it is unique: upper and lower case are one."""
    return email.lower()


def whole(body: bytes) -> Fields:
    """A user from the body of POST or PUT. Raises `RequestRefused`."""
    document = _object(body)
    faults = [Fault("is missing", pointer=f"#/{name}") for name in ("email", "name") if name not in document]
    faults += _faults(document)
    attributes = document.get("attributes", {})
    if isinstance(attributes, dict):
        faults += [Fault("is not a text", pointer=_at(name)) for name, value in attributes.items() if value is None]
        faults += attribute_faults(attributes)
    else:
        faults.append(Fault("is not an object", pointer="#/attributes"))
    if faults:
        raise RequestRefused(invalid(faults))
    return Fields(document["email"], document["name"], attributes)


def merge_patch(body: bytes) -> Changes:
    """Changes from the body of PATCH, a JSON merge patch (RFC 7396). Raises `RequestRefused`."""
    document = _object(body)
    faults = _faults(document)
    attributes = document.get("attributes", {})
    drops = attributes is None
    if not drops and not isinstance(attributes, dict):
        faults.append(Fault("is neither an object nor null", pointer="#/attributes"))
    elif not drops:
        faults += attribute_faults({name: value for name, value in attributes.items() if value is not None})
    if faults:
        raise RequestRefused(invalid(faults))
    return Changes(document.get("email"), document.get("name"), attributes or {}, drops)


def merged(attributes: dict[str, str], changes: dict[str, str | None], *, drops: bool) -> dict[str, str]:
    """The attributes after a merge patch. Raises `RequestRefused` when they are too many."""
    kept = {} if drops else {name: value for name, value in attributes.items() if name not in changes}
    result = kept | {name: value for name, value in changes.items() if value is not None}
    faults = attribute_faults(result)
    if faults:
        raise RequestRefused(invalid(faults))
    return result


def attribute_faults(attributes: dict[str, Any]) -> list[Fault]:
    """What is wrong with attributes; None among their values is passed over."""
    faults = []
    if len(attributes) > ATTRIBUTES_MAX:
        faults.append(Fault(f"has more than {ATTRIBUTES_MAX} members", pointer="#/attributes"))
    for name, value in attributes.items():
        if not 0 < len(name) <= ATTRIBUTE_NAME_CHARS_MAX:
            faults.append(Fault(f"its name has not 1 to {ATTRIBUTE_NAME_CHARS_MAX} characters", pointer=_at(name)))
        if value is not None and not isinstance(value, str):
            faults.append(Fault("is not a text", pointer=_at(name)))
        elif value is not None and len(value) > ATTRIBUTE_CHARS_MAX:
            faults.append(Fault(f"has more than {ATTRIBUTE_CHARS_MAX} characters", pointer=_at(name)))
    return faults


def _object(body: bytes) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(body)
    except NO_JSON as error:
        raise RequestRefused(Problem(400, "The body is not JSON", "not-json", str(error))) from error
    if not isinstance(document, dict):
        raise RequestRefused(invalid([Fault("is not an object", pointer="#")]))
    return document


def _faults(document: dict[str, Any]) -> list[Fault]:
    """What is wrong with the fields that are there, but for the attributes."""
    faults = [Fault("is not a field of a user", pointer=_pointer(name)) for name in document if name not in _NAMES]
    if "email" in document:
        email = document["email"]
        if not isinstance(email, str):
            faults.append(Fault("is not a text", pointer="#/email"))
        elif len(email) > EMAIL_CHARS_MAX:
            faults.append(Fault(f"has more than {EMAIL_CHARS_MAX} characters", pointer="#/email"))
        elif not _EMAIL.fullmatch(email):
            faults.append(Fault("is not an e-mail address", pointer="#/email"))
    if "name" in document:
        name = document["name"]
        if not isinstance(name, str):
            faults.append(Fault("is not a text", pointer="#/name"))
        elif not 0 < len(name.strip()) <= len(name) <= NAME_CHARS_MAX:
            faults.append(Fault(f"has not 1 to {NAME_CHARS_MAX} characters, or only spaces", pointer="#/name"))
    return faults


def _at(name: str) -> str:
    return "#/attributes" + _pointer(name)[1:]


def _pointer(name: str) -> str:
    """RFC 6901; long names are cut, so that an error is not larger than its cause."""
    return "#/" + name[: 2 * ATTRIBUTE_NAME_CHARS_MAX].replace("~", "~0").replace("/", "~1")
