"""Reports of collectors for tests of what is landed of them."""

from collections.abc import Mapping

from shared.schemas.received import SCHEMA_VERSION, Received, ReceivedCount


def received(bucket_ms: int, collector: str = "c-1", releases: Mapping[str, tuple[int, int]] | None = None) -> Received:
    """What a collector received of acme in a bucket, by release: received and rejected."""
    found = releases or {}
    return Received(
        schema_version=SCHEMA_VERSION,
        customer_id="acme",
        collector=collector,
        process=1,
        bucket_ms=bucket_ms,
        received=sum(one for one, _ in found.values()),
        rejected=sum(one for _, one in found.values()),
        releases={name: ReceivedCount(*one) for name, one in found.items()},
    )
