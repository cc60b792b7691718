"""Compiled code reads attributes as Python does, also where it remembers a slot (`deploy/compiled/attributes.h`)."""

import ctypes
import subprocess
import sys
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, Final

import msgspec
import pytest

from deploy.compiled.build import compile_modules
from services.rim.process.compiled import SUFFIX

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

#: One place that reads by a fixed name, and one that reads by any.
_SOURCE: Final = """
from typing import Any

def value_of(one: Any) -> Any:
    return one.value

def read(one: Any, name: str) -> Any:
    return getattr(one, name)
"""
Read = Callable[..., Any]
#: `tp_flags` of CPython's `PyTypeObject`, and `Py_TPFLAGS_VALID_VERSION_TAG`.
_FLAGS_AT: Final = 168
_HAS_VERSION: Final = 1 << 19


class First(msgspec.Struct):
    value: object
    other: object = "other of first"


class Second(msgspec.Struct, gc=False):
    other: object
    value: object


class Slots:
    __slots__ = ("value",)
    value: object


class Plain:
    def __init__(self, value: object) -> None:
        self.value = value


@pytest.fixture(scope="module")
def reads(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("reads")
    (folder / "reads.py").write_text(_SOURCE)
    compile_modules(folder, ["reads"], group="reads", level="0")
    spec = spec_from_file_location("reads", folder / f"reads{SUFFIX}")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(params=["fixed", "named"])
def value_of(reads: Any, request: pytest.FixtureRequest) -> Read:
    if request.param == "fixed":
        return reads.value_of  # type: ignore[no-any-return]
    return lambda one: reads.read(one, "value")


def test_structs_that_hold_a_field_at_different_places_are_read_by_one_line(value_of: Read) -> None:
    first, second = First("of first"), Second("other", "of second")
    assert [value_of(one) for one in (first, first, second, second, first, Plain("of plain"), second)] == [
        *("of first", "of first", "of second", "of second", "of first", "of plain", "of second")
    ]


def test_a_line_that_reads_by_a_variable_reads_what_it_names(reads: Any) -> None:
    one = Second("other", "value")
    assert [reads.read(one, name) for name in ("value", "other", "other", "value")] == [
        *("value", "other", "other", "value")
    ]
    # A name that was made just now has no lasting address.
    assert [reads.read(one, "".join(("val", "ue")[:2])) for _ in range(3)] == ["value"] * 3
    with pytest.raises(AttributeError, match="third"):
        reads.read(one, "third")


def test_an_empty_slot_has_no_value_also_where_it_had_one(value_of: Read) -> None:
    one = Slots()
    for _ in range(2):
        one.value = 1
        assert [value_of(one), value_of(one)] == [1, 1]
        del one.value
        with pytest.raises(AttributeError, match="value"):
            value_of(one)


def test_a_class_that_changes_is_read_as_it_is_now(value_of: Read) -> None:
    class Changing:
        __slots__ = ("value",)
        value: object

    one = Changing()
    one.value = "in the slot"
    assert [value_of(one), value_of(one)] == ["in the slot"] * 2
    Changing.value = property(lambda _: "of the property")  # type: ignore[misc]
    assert [value_of(one), value_of(one)] == ["of the property"] * 2


def test_a_class_that_keeps_its_version_when_it_changes_is_read_as_it_is_now(reads: Any) -> None:
    """So are classes once CPython has given all 2^32 versions. A name of over 100 characters is looked up without giving one."""
    name = "value_" + "x" * 100
    changing: Any = type("Changing", (), {"__slots__": ("value", name)})
    one = changing()
    one.value = "gives the class a version"
    setattr(one, name, "in the slot")
    assert [reads.value_of(one)] * 2 == ["gives the class a version"] * 2
    flags = ctypes.c_ulong.from_address(id(changing) + _FLAGS_AT)
    assert flags.value & _HAS_VERSION
    flags.value &= ~_HAS_VERSION

    assert [reads.read(one, name), reads.read(one, name)] == ["in the slot"] * 2
    setattr(changing, name, property(lambda _: "of the property"))
    assert reads.read(one, name) == "of the property"


def test_what_a_class_computes_is_computed_each_time(value_of: Read) -> None:
    class Counting(Slots):
        count = 0

        def __getattribute__(self, name: str) -> object:
            type(self).count += 1
            return type(self).count

    class Overriding(Slots):
        value = property(lambda _: "overridden")

    base = Slots()
    base.value = "of base"
    counting, overriding = Counting(), Overriding()
    counting.value = "hidden"
    assert [value_of(one) for one in (base, base, counting, counting, overriding, base)] == [
        *("of base", "of base", 1, 2, "overridden", "of base")
    ]


def test_reading_holds_nothing_back(value_of: Read) -> None:
    held = object()
    one = First(held)
    before = sys.getrefcount(held)
    for _ in range(1_000):
        value_of(one)
    assert sys.getrefcount(held) == before


def test_the_library_reads_by_the_header(reads: Any) -> None:
    """Else all of the above would hold of mypyc's own reads, and show nothing."""
    symbols = subprocess.run(["nm", reads.__file__], capture_output=True, text=True, check=True).stdout
    assert "SeenSlot_look" in symbols
