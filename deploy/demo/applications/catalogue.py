"""The parts of the demo, in the order in which they are played."""

from typing import Final

from deploy.demo.applications import api_baselines, api_schemas, recordings, traces, users
from deploy.demo.applications.part import Part

ALL: Final[tuple[Part, ...]] = (traces.PART, api_schemas.PART, api_baselines.PART, users.PART, recordings.PART)


class NoSuchPart(ValueError):
    """A name that no part has; the text lists those there are."""


def named(names: str) -> tuple[Part, ...]:
    """The parts of a list such as `traces,api_schemas`, of `all`, or of none (""). Raises `NoSuchPart`."""
    if names == "all":
        return ALL
    known = {part.application: part for part in ALL}
    wanted = [name for name in names.split(",") if name]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise NoSuchPart(f"{', '.join(unknown)}: the applications are all, or some of {', '.join(known)}")
    return tuple(part for part in ALL if part.application in wanted)
