"""Live records as short to write as tests want them."""

from typing import Any

from shared.schemas.live import BUCKET_MS, Live, LiveSlice

_ZEROS = dict.fromkeys(
    set(Live.__struct_fields__) - {"schema_version", "partition", "customer_id", "bucket_ms", "slices"}, 0
)


def live(bucket: int, *, customer_id: str = "acme", partition: int = 0, **figures: Any) -> Live:
    """A record of the `bucket`th bucket; figures not named are 0."""
    return Live(
        schema_version=1,
        partition=partition,
        customer_id=customer_id,
        bucket_ms=bucket * BUCKET_MS,
        **(_ZEROS | figures),
    )


def slice_of(**figures: int) -> LiveSlice:
    """A slice; figures not named are 0."""
    return LiveSlice(**(dict.fromkeys(LiveSlice.__struct_fields__, 0) | figures))
