"""The input that one collector received from a customer in a bucket of 5 s, and the rejected part of it. The value of topic
`received`.

Beacons are counted once they are stored, and rejected ones once their answer is certain. (process, customer, bucket) is unique.
A collector that ends by force has counted up to a bucket that it does not report.
"""

from typing import Final

import msgspec

SCHEMA_VERSION: Final = 1
#: The dimensions of these figures. Slices are named as those of topic `live`.
COLLECTOR: Final = "collector"
RELEASE: Final = "release"
DIMENSIONS: Final = (COLLECTOR, RELEASE)
#: Releases that a record names: those of which the most was received. All others are added up as `OTHER`.
RELEASES_MAX: Final = 20
#: A customer of which nothing comes is reported, with zeros, for so long.
IDLE_MS: Final = 10 * 60 * 1000


class ReceivedCount(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Beacons that came, accepted and rejected, and those of them that were rejected."""

    received: int = 0
    rejected: int = 0


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One customer at one collector in [`bucket_ms`, `bucket_ms` + 5 s) of the collector's clock."""

    schema_version: int
    customer_id: str
    #: The collector's id, as in its beacons.
    collector: str
    #: A number of this start of the collector and of no other.
    process: int
    bucket_ms: int
    received: int
    rejected: int
    #: By release: the player's version, or else that of its SDK, as far as a beacon names one or its view did before. They add
    #: up to the customer's figures: a beacon whose release is not known counts as `UNKNOWN`.
    releases: dict[str, ReceivedCount] = {}
