"""Spark's schema of a msgspec struct: derived, so that the struct stays the one home of a record's fields."""

from collections.abc import Collection
from typing import Any, Final

import msgspec
from msgspec import inspect
from pyspark.sql import types

_SCALARS: Final[dict[type[inspect.Type], type[types.DataType]]] = {
    inspect.IntType: types.LongType,
    inspect.FloatType: types.DoubleType,
    inspect.BoolType: types.BooleanType,
    inspect.StrType: types.StringType,
    inspect.LiteralType: types.StringType,
}


class NotTabular(TypeError):
    """The struct has a field that no column can hold."""


def spark_schema(struct: type[msgspec.Struct], as_text: Collection[str] = ()) -> types.StructType:
    """The struct's fields as nullable columns, in their order; those of `as_text` as the JSON that they are written in."""
    return types.StructType(
        [
            types.StructField(field.name, types.StringType() if field.name in as_text else _data_type(field.type))
            for field in _info(struct).fields
        ]
    )


def defaults(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """What an absent field means, for every field that has a default other than None."""
    found: dict[str, Any] = {}
    for field in _info(struct).fields:
        if field.default_factory is not msgspec.NODEFAULT:
            found[field.name] = field.default_factory()
        elif field.default not in (msgspec.NODEFAULT, None):
            found[field.name] = field.default
    return found


def required(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields every record must have."""
    return tuple(field.name for field in _info(struct).fields if field.required)


def never_null(struct: type[msgspec.Struct]) -> tuple[str, ...]:
    """The fields that every record has a value of."""
    return tuple(field.name for field in _info(struct).fields if field.required and not _without_none(field.type)[1])


def allowed_values(struct: type[msgspec.Struct]) -> dict[str, tuple[str, ...]]:
    """The values a field may have, for every field that lists them."""
    found: dict[str, tuple[str, ...]] = {}
    for field in _info(struct).fields:
        kind, _ = _without_none(field.type)
        if isinstance(kind, inspect.LiteralType):
            found[field.name] = tuple(str(value) for value in kind.values)
    return found


def bounds(struct: type[msgspec.Struct]) -> dict[str, tuple[int, int]]:
    """The least and the largest value a field may have, for every integer; raises `NotTabular` where one is not declared."""
    found: dict[str, tuple[int, int]] = {}
    for field in _info(struct).fields:
        kind, _ = _without_none(field.type)
        if isinstance(kind, inspect.IntType):
            if kind.ge is None or kind.le is None:
                raise NotTabular(f"{struct.__name__}.{field.name} has no bounds: it could be any integer")
            found[field.name] = (kind.ge, kind.le)
    return found


def _info(struct: type[msgspec.Struct]) -> inspect.StructType:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return info


def _struct_type(info: inspect.StructType) -> types.StructType:
    return types.StructType([types.StructField(field.name, _data_type(field.type)) for field in info.fields])


def _data_type(kind: inspect.Type) -> types.DataType:
    kind, _ = _without_none(kind)
    if type(kind) in _SCALARS:
        return _SCALARS[type(kind)]()
    if isinstance(kind, inspect.ListType):
        return types.ArrayType(_data_type(kind.item_type))
    if isinstance(kind, inspect.DictType):
        return types.MapType(_data_type(kind.key_type), _data_type(kind.value_type))
    if isinstance(kind, inspect.StructType):
        if defaults(kind.cls):
            raise NotTabular(f"{kind.cls.__name__} is nested, so its absent fields can only mean None")
        return _struct_type(kind)
    raise NotTabular(f"no column type for {kind}")


def _without_none(kind: inspect.Type) -> tuple[inspect.Type, bool]:
    if not isinstance(kind, inspect.UnionType):
        return kind, False
    others = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
    if len(others) != 1:
        raise NotTabular(f"a column has one type, not {kind}")
    return others[0], True
