"""Limits of one request, as operators set them. Sizes are after decompression."""

from typing import ClassVar

import pydantic

from shared.settings import SettingsGroup


class IntakeLimits(SettingsGroup):
    """The part of the collector's settings that the intake goes by."""

    PREFIX: ClassVar[str] = "COLLECTOR_"

    body_bytes_max: int = pydantic.Field(
        default=2 * 1024 * 1024, ge=1_024, le=64 * 1024 * 1024, description="size of one request's body"
    )
    unpack_ratio_max: int = pydantic.Field(
        default=100, ge=2, le=10_000, description="times its size that a compressed body may unpack to"
    )
    batch_beacons_max: int = pydantic.Field(default=3_600, ge=1, le=100_000, description="beacons in one request")
    batch_spans_max: int = pydantic.Field(default=10_000, ge=1, le=100_000, description="OTLP spans in one request")
    batch_calls_max: int = pydantic.Field(default=1_000, ge=1, le=100_000, description="API calls in one request")
    body_items_max: int = pydantic.Field(
        default=131_072, ge=1_024, le=2**24, description="JSON values of one body, counted before it is parsed"
    )
    attrs_max: int = pydantic.Field(
        default=1_000, ge=1, le=100_000, description="fields of one beacon, and values within them"
    )
    attrs_depth_max: int = pydantic.Field(default=8, ge=1, le=64, description="levels of values within values")
    attrs_string_chars_max: int = pydantic.Field(
        default=65_536, ge=64, le=1_000_000, description="characters of one value"
    )
