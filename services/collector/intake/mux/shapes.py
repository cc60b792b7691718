"""The shapes of a body: as nearly all are, and with its events as they were written."""

from typing import Annotated, Final

import msgspec

#: A whole number that every reader of the topic can hold. Larger ones are read with more care, as fractions.
_Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Scalar = None | bool | _Whole | float | str


class FlatBody(msgspec.Struct):
    """A body as nearly all are: values hold values one level deep at most, so that nothing need be looked at twice."""

    events: list[dict[str, _Scalar | dict[str, _Scalar] | list[_Scalar]]]
    metadata: dict[str, _Scalar] = {}


class RawBody(msgspec.Struct):
    """A body with its events as they were written."""

    events: list[msgspec.Raw]


FLAT_BODY: Final = msgspec.json.Decoder(FlatBody)
RAW_BODY: Final = msgspec.json.Decoder(RawBody)
