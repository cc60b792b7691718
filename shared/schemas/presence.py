"""Presence: the heartbeat of one replica of a slot, sent several times a second. The value of topic `presence`."""

from typing import Final, Literal

import msgspec

SCHEMA_VERSION: Final = 1

#: active: in the group, working partitions. standby: keeping copies. handing_over: has released its partitions to `successor`.
Role = Literal["active", "standby", "handing_over"]


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """One heartbeat of one replica. `replica` 0 is the home replica; the others are its standbys, in their order."""

    schema_version: int
    application: str
    slot: str
    replica: int
    #: New at each start, so that a process distinguishes its own heartbeats from those of its predecessor.
    incarnation: str
    role: Role
    #: Where its lookups listen; None when they are off.
    url: str | None = None
    #: What an active replica has; what a standby keeps copies of.
    partitions: list[int] = []
    #: Of a standby's copies those that have been at the changelog's end, and how many of its records each lacks now.
    lags: dict[int, int] = {}
    #: Who is to go on after `handing_over`.
    successor: int | None = None
