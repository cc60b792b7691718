"""Spark's schema follows from the struct alone."""

from typing import Annotated, Literal

import msgspec
import pytest
from pyspark.sql import types

from services.finalizer.transforms.spark_schema import (
    NotTabular,
    allowed_values,
    bounds,
    defaults,
    never_null,
    required,
    spark_schema,
)
from services.finalizer.warehouse.tables import VIEWS
from shared.schemas.view import NUMBER_MAX, View


class Inner(msgspec.Struct):
    at_ms: int
    note: str | None = None


class Outer(msgspec.Struct):
    name: str
    kind: Literal["a", "b"]
    maybe: Literal["c"] | None = None
    share: float = 1.0
    ranges: list[list[int]] = []
    custom: dict[str, str] = {}
    inner: list[Inner] = []


def test_every_field_becomes_a_column_of_its_type() -> None:
    assert spark_schema(Outer).simpleString() == (
        "struct<name:string,kind:string,maybe:string,share:double,ranges:array<array<bigint>>,"
        "custom:map<string,string>,inner:array<struct<at_ms:bigint,note:string>>>"
    )


def test_what_absence_means_is_reported_for_every_default_but_none() -> None:
    assert defaults(Outer) == {"share": 1.0, "ranges": [], "custom": {}, "inner": []}
    assert required(Outer) == ("name", "kind")


def test_what_may_be_none_is_separated_from_what_never_is() -> None:
    class Reported(msgspec.Struct):
        at_ms: int
        reason: str | None

    assert (required(Reported), never_null(Reported)) == (("at_ms", "reason"), ("at_ms",))


def test_listed_values_are_reported_of_optional_fields_too() -> None:
    assert allowed_values(Outer) == {"kind": ("a", "b"), "maybe": ("c",)}


def test_a_field_of_two_types_has_no_column() -> None:
    class Torn(msgspec.Struct):
        value: int | str

    with pytest.raises(NotTabular):
        spark_schema(Torn)


def test_a_nested_default_that_could_not_be_filled_in_is_refused() -> None:
    class Counted(msgspec.Struct):
        count: int = 1

    class Holder(msgspec.Struct):
        counted: Counted

    with pytest.raises(NotTabular):
        spark_schema(Holder)


def test_bounds_are_reported_of_every_integer_and_an_integer_without_is_refused() -> None:
    class Bounded(msgspec.Struct):
        share: float
        count: Annotated[int, msgspec.Meta(ge=0, le=9)]
        maybe: Annotated[int, msgspec.Meta(ge=-1, le=1)] | None = None

    class Boundless(Bounded):
        size: Annotated[int, msgspec.Meta(ge=0)] = 0

    assert bounds(Bounded) == {"count": (0, 9), "maybe": (-1, 1)}
    with pytest.raises(NotTabular, match=r"Boundless\.size"):
        bounds(Boundless)


def test_no_integer_of_a_view_is_without_bounds() -> None:
    assert bounds(View)["rebuffer_ms"] == (0, NUMBER_MAX)


def test_the_table_of_views_has_every_field_of_a_view() -> None:
    fields = {field.name for field in msgspec.structs.fields(View)}
    assert fields < set(VIEWS.schema.fieldNames())
    assert VIEWS.schema["bitrate_integral"].dataType == types.LongType()
