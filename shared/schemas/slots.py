"""The report of a slot about itself and its partitions, for operators. The classes are the JSON documents."""

from typing import Literal

import msgspec


class PartitionStatus(msgspec.Struct, frozen=True):
    """One partition. What is not known, or has not happened yet, is null."""

    partition: int
    #: The slot that has it; null while no slot does.
    owner: str | None = None
    #: `unanswered`: its owner has lookups off, or did not answer in time.
    state: Literal["working", "taking", "unowned", "unanswered"] = "unowned"
    lag_records: int | None = None
    #: The partition's clock, ms since 1970.
    clock_ms: int | None = None
    #: How long the last commit took, and how long ago it was.
    commit_ms: int | None = None
    age_ms: int | None = None
    #: Number of existing rows, by store.
    rows: dict[str, int] = {}
    #: Numbers that the application keeps, by name: `open_views`.
    tallies: dict[str, int] = {}
    timers_due: int | None = None
    #: Keys whose records are rejected because the application failed on them repeatedly.
    quarantined_keys: int | None = None
    #: Since the slot has the partition: dropped checkpoints, by Kafka's code (by the outcome, if there is no code).
    dropped_commits: dict[str, int] = {}
    #: Since then, by reason: rejected records and rows, also those on which the application raised (`..._failed`).
    rejected: dict[str, int] = {}
    #: Since then: late records.
    late: int | None = None
    #: Changelog rows replayed by the last takeover, or so far by the running one; and the remaining records (rows and markers).
    restored_rows: int | None = None
    restored_rows_per_second: int | None = None
    restore_left_records: int | None = None
    #: How far the best standby copy is behind the changelog; null without one.
    standby_lag_records: int | None = None


class SlotStatus(msgspec.Struct, frozen=True):
    """One slot."""

    slot: str
    partitions: list[PartitionStatus] = []
    rss_bytes: int | None = None
    #: CPU of the whole process by records read, over the last seconds in which there were any; microseconds.
    cpu_us_per_record: float | None = None
    #: Why it did not answer, where it did not.
    problem: str | None = None


class SlotsOverview(msgspec.Struct, frozen=True):
    """Every slot and partition of an application: the answer of `GET /partitions`."""

    application: str
    #: The slot that answers.
    answered_by: str
    slots: list[SlotStatus]
    partitions: list[PartitionStatus]
