"""Hostile bodies: for each parser those that take the most time or memory per byte. Tests of bounds use them too."""

import gzip
from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue

from services.collector.intake import epas, native
from services.collector.intake.api_calls import api_calls
from services.collector.intake.cmcd import cmcd
from services.collector.intake.mux import mux
from services.collector.intake.otlp import otlp
from services.collector.intake.post import ParsedBody, Post, Rules

Parse = Callable[[Post, Rules], ParsedBody]

#: Makes a body of about so many bytes.
Made = Callable[[int], bytes]

_PATH: Final = b'{"method":"GET","host":"h","path":"%s","status":200,"time_ms":1795176999000}'
_CMCD: Final = b'e=t,sid="s",ts=1795176999000,'
_MUX: Final = b'{"ake":"acme","xid":"v","e":"hb","uti":1795176999000,"c1":'
_NATIVE: Final = b'{"view_id":"v","event":"heartbeat","time_ms":1795176999000,"attrs":{"a":'
_EPAS: Final = b'{"event":"heartbeat","sessionId":"s","timestamp":1795176999000,"payload":'
_CALL: Final = b'{"method":"GET","host":"h","path":"/p","status":200,"time_ms":1795176999000,"response":{"body":'
_SPAN: Final = (
    b'{"traceId":"%032x","spanId":"%016x","startTimeUnixNano":"1795176999000000000","endTimeUnixNano":"1795176999000000000"'
    % (1, 1)
)


def _repeated(begin: bytes, unit: bytes, end: bytes, size: int) -> bytes:
    """`unit` as often as fits between `begin` and `end`, without its last byte (a comma)."""
    count = max(1, (size - len(begin) - len(end)) // len(unit))
    return begin + (unit * count)[:-1] + end


def _nested(opening: bytes, inner: bytes, closing: bytes, depth: int) -> bytes:
    return opening * depth + inner + closing * depth


_DEEP: Final = _nested(b"[", b"", b"]", 500) + b","

#: JSON values, each dense in one kind of value.
JSON_VALUES: Final[Mapping[str, Made]] = {
    "digits": lambda size: _repeated(b"[", b"1,", b"]", size),
    "fractions": lambda size: _repeated(b"[", b"1.5,", b"]", size),
    "exponents": lambda size: _repeated(b"[", b"1e9,", b"]", size),
    "strings": lambda size: _repeated(b"[", '"ā",'.encode(), b"]", size),
    "empty lists": lambda size: _repeated(b"[", b"[],", b"]", size),
    "empty objects": lambda size: _repeated(b"[", b"{},", b"]", size),
    "objects": lambda size: _repeated(b"[", b'{"a":0},', b"]", size),
    "objects in objects": lambda size: _repeated(b"[", _nested(b'{"a":', b"0", b"}", 7) + b",", b"]", size),
    "deep lists": lambda size: _repeated(b"[", _DEEP, b"]", size),
    "one key over and over": lambda size: _repeated(b"{", b'"":0,', b"}", size),
    "keys": lambda size: b"{" + b",".join(b'"%x":0' % number for number in range(size // 10)) + b"}",
    "escapes": lambda size: b'"' + b"\\u0101" * (size // 6) + b'"',
    "half characters": lambda size: b'"' + b"\\ud800" * (size // 6) + b'"',
    "half characters in lists": lambda size: _repeated(b"[", b'"\\ud800",', b"]", size),
    "long string": lambda size: b'"' + b"x" * size + b'"',
    "open string": lambda size: b'"' + b"x" * size,
    "open lists": lambda size: b"[" * size,
    "long number": lambda size: b"9" * size,
    "blanks": lambda size: b" " * size + b"0",
    "words": lambda size: _repeated(b"[", b'"word",', b"]", size),
    "emails": lambda size: _repeated(b"[", b'"%s@x",' % (b"a" * 240), b"]", size),
    "colons": lambda size: _repeated(b"[", b'"%s",' % (b":" * 250), b"]", size),
}


def _mux(value: bytes) -> bytes:
    return b'{"metadata":{"transmission_timestamp":1795176999000},"events":[' + _MUX + value + b"}]}"


def _otlp_attribute(value: bytes) -> bytes:
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + _SPAN + b',"attributes":' + value + b"}]}]}]}"


def _calls(unit: bytes, size: int) -> bytes:
    return _repeated(b'{"calls":[', unit + b",", b"]}", size)


def _api_call(value: bytes) -> bytes:
    return _CALL + value + b"}}"


#: Bodies of CMCD's event mode.
CMCD_BODIES: Final[Mapping[str, Made]] = {
    "a list of items": lambda size: _repeated(_CMCD + b"a=(", b"1 ", b")", size),
    "a list of items with parameters": lambda size: _repeated(_CMCD + b"a=(", b"1;a=1;b=2 ", b")", size),
    "a list of strings": lambda size: _repeated(_CMCD + b"a=(", b'"a" ', b")", size),
    "an unterminated string": lambda size: _CMCD + b'a="' + b"x" * size,
    "an unterminated string of escapes": lambda size: _CMCD + b'a="' + b'\\"' * (size // 2),
    "a string of escapes": lambda size: _CMCD + b'a="' + b'\\"' * (size // 2) + b'"',
    "an unterminated token": lambda size: _CMCD + b"a=" + b"x" * size + b"(",
    "an unterminated key": lambda size: _CMCD + b"x" * size + b"(",
    "unterminated bytes": lambda size: _CMCD + b"a=:" + b"x" * size,
    "a number": lambda size: _CMCD + b"a=" + b"9" * size,
    "blanks": lambda size: _CMCD + b"a=1" + b" " * size + b"!",
    "blanks in a list": lambda size: _CMCD + b"a=(1" + b" " * size,
    "one key over and over": lambda size: _CMCD + b"a," * (size // 2) + b"a",
    "one key over and over with values": lambda size: _CMCD + b"a=?1," * (size // 5) + b"a",
    "keys that need care": lambda size: _CMCD + b"a=1;b," * (size // 6) + b"a",
    "parameters over and over": lambda size: _CMCD + b"a=1" + b";a" * (size // 2),
    "empty lines": lambda size: b"\n" * size,
    "blank lines": lambda size: b" \n" * (size // 2),
    "short lines": lambda size: b"a\n" * (size // 2),
    "lines of lists": lambda size: _repeated(b"", _CMCD + b"a=(%s)\n" % (b"1 " * 300), b"", size),
    "lines of keys": lambda size: _repeated(b"", _CMCD + b",".join(b"k%d" % n for n in range(100)) + b"\n", b"", size),
    "quotes": lambda size: _CMCD + b'"' * size,
    "commas": lambda size: _CMCD + b"," * size,
}


def _protobuf_values(size: int) -> bytes:
    request = ExportTraceServiceRequest()
    attribute = request.resource_spans.add().scope_spans.add().spans.add().attributes.add(key="a")
    attribute.value.CopyFrom(AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)] * (size // 4))))
    return bytes(request.SerializeToString())


def _protobuf_spans(size: int) -> bytes:
    empty_spans = b"\x12\x02\x12\x00" * (size // 4 - 2)
    return b"\x0a" + _varint(len(empty_spans)) + empty_spans


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _queries(query: bytes) -> Made:
    return lambda size: _calls(_PATH % (b"/p?" + query), size)


def _paths(path: bytes) -> Made:
    return lambda size: _calls(_PATH % path, size)


def _within(value: Made, around: Callable[[bytes], bytes]) -> Made:
    """The body of about so many bytes that has the value in it."""
    return lambda size: around(value(size - 200))


def _batch(begin: bytes, unit: bytes, end: bytes) -> Made:
    return lambda size: _repeated(begin, unit, end, size)


def _all_within(around: Callable[[bytes], bytes], prefix: str = "") -> dict[str, Made]:
    return {prefix + name: _within(value, around) for name, value in JSON_VALUES.items()}


_SIXTY: Final = b"0," + b",".join(b'"c%d":1' % n for n in range(60))

#: By parser: what makes bodies of about so many bytes, by what they are made of.
PARSERS: Final[Mapping[str, tuple[Parse, Mapping[str, Made]]]] = {
    "mux": (
        mux.parse_beacons,
        _all_within(_mux)
        | _all_within(lambda value: b'{"events":[],"metadata":{"a":%s}}' % value, "metadata: ")
        | {
            "events of nothing": _batch(b'{"events":[', b"{},", b"]}"),
            "events of digits": _batch(b'{"events":[', b"1,", b"]}"),
            "bad events": _batch(b'{"events":[', _MUX.replace(b'"v"', b'""') + b"0},", b"]}"),
            "full events": _batch(b'{"events":[', _MUX + _SIXTY + b"},", b"]}"),
        },
    ),
    "cmcd": (cmcd.parse_records, CMCD_BODIES),
    "native": (
        native.parse_beacons,
        _all_within(lambda value: _NATIVE + value + b"}}")
        | {
            "beacons of nothing": _batch(b'{"beacons":[', b"{},", b"]}"),
            "beacons of digits": _batch(b'{"beacons":[', b"1,", b"]}"),
            "bad beacons": _batch(b'{"beacons":[', b'{"view_id":"v","time_ms":1.0,"event":"x","q":"\\ud800"},', b"]}"),
            "full beacons": _batch(b'{"beacons":[', _NATIVE + _SIXTY + b"}},", b"]}"),
        },
    ),
    "epas": (
        lambda post, rules: epas.parse_event(post, rules, "new").parsed,
        _all_within(lambda value: _EPAS + value + b"}"),
    ),
    "api calls": (
        api_calls.parse_calls,
        _all_within(_api_call)
        | {
            f"many calls: {name}": lambda size, value=value: _calls(_api_call(value(1_500)), size)
            for name, value in JSON_VALUES.items()
        }
        | {
            "queries": _queries(b"&".join(b"k%d=1" % n for n in range(1_000))),
            "queries of nothing": _queries(b"a&" * 3_900),
            "queries of escapes": _queries(b"%41" * 2_600),
            "paths": _paths(b"/" + b"/".join(b"p%d" % n for n in range(20))),
            "paths of slashes": _paths(b"/" * 7_900),
        },
    ),
    "otlp json": (
        otlp.parse_spans,
        {
            "attributes": _within(_batch(b"[", b"{},", b"]"), _otlp_attribute),
            "attributes with keys": _within(
                _batch(b"[", b'{"key":"a","value":{"intValue":1}},', b"]"), _otlp_attribute
            ),
            "a list of values": _within(
                _batch(b'[{"key":"a","value":{"arrayValue":{"values":[', b"{},", b"]}}}]"), _otlp_attribute
            ),
            "spans of nothing": _batch(b'{"resourceSpans":[{"scopeSpans":[{"spans":[', b"{},", b"]}]}]}"),
            "scopes of nothing": _batch(b'{"resourceSpans":[{"scopeSpans":[', b"{},", b"]}]}"),
            "resources of nothing": _batch(b'{"resourceSpans":[', b"{},", b"]}"),
            "events": _within(_batch(b'[],"events":[', b"{},", b"]"), _otlp_attribute),
        },
    ),
    "otlp protobuf": (
        otlp.parse_spans,
        {
            "a list of values": _protobuf_values,
            "empty spans": _protobuf_spans,
            "empty resources": lambda size: b"\x0a\x00" * (size // 2),
        },
    ),
}


def body(parser: str, kind: str, size: int) -> bytes:
    """The hostile body of that kind, of at most so many bytes."""
    return PARSERS[parser][1][kind](size)[:size]


def packed(body: bytes) -> bytes:
    """As a client would send it that pays for every byte."""
    return gzip.compress(body, 9)


CONTENT_TYPES: Final[Mapping[str, str]] = {"otlp json": otlp.JSON, "otlp protobuf": otlp.PROTOBUF}
