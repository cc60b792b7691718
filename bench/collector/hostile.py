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


def json_values(size: int) -> dict[str, bytes]:
    """JSON values of about so many bytes, each dense in one kind of value."""
    deep = _nested(b"[", b"", b"]", 500) + b","
    return {
        "digits": _repeated(b"[", b"1,", b"]", size),
        "fractions": _repeated(b"[", b"1.5,", b"]", size),
        "exponents": _repeated(b"[", b"1e9,", b"]", size),
        "strings": _repeated(b"[", '"ā",'.encode(), b"]", size),
        "empty lists": _repeated(b"[", b"[],", b"]", size),
        "empty objects": _repeated(b"[", b"{},", b"]", size),
        "objects": _repeated(b"[", b'{"a":0},', b"]", size),
        "objects in objects": _repeated(b"[", _nested(b'{"a":', b"0", b"}", 7) + b",", b"]", size),
        "deep lists": _repeated(b"[", deep, b"]", size),
        "one key over and over": _repeated(b"{", b'"":0,', b"}", size),
        "keys": b"{" + b",".join(b'"%x":0' % number for number in range(size // 10)) + b"}",
        "escapes": b'"' + b"\\u0101" * (size // 6) + b'"',
        "half characters": b'"' + b"\\ud800" * (size // 6) + b'"',
        "half characters in lists": _repeated(b"[", b'"\\ud800",', b"]", size),
        "long string": b'"' + b"x" * size + b'"',
        "open string": b'"' + b"x" * size,
        "open lists": b"[" * size,
        "long number": b"9" * size,
        "blanks": b" " * size + b"0",
        "words": _repeated(b"[", b'"word",', b"]", size),
        "emails": _repeated(b"[", b'"%s@x",' % (b"a" * 240), b"]", size),
        "colons": _repeated(b"[", b'"%s",' % (b":" * 250), b"]", size),
    }


def _mux(value: bytes) -> bytes:
    return b'{"metadata":{"transmission_timestamp":1795176999000},"events":[' + _MUX + value + b"}]}"


def _otlp_attribute(value: bytes) -> bytes:
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[' + _SPAN + b',"attributes":' + value + b"}]}]}]}"


def _calls(unit: bytes, size: int) -> bytes:
    return _repeated(b'{"calls":[', unit + b",", b"]}", size)


def _api_call(value: bytes) -> bytes:
    return _CALL + value + b"}}"


def cmcd_bodies(size: int) -> dict[str, bytes]:
    """Bodies of CMCD's event mode."""
    return {
        "a list of items": _repeated(_CMCD + b"a=(", b"1 ", b")", size),
        "a list of items with parameters": _repeated(_CMCD + b"a=(", b"1;a=1;b=2 ", b")", size),
        "a list of strings": _repeated(_CMCD + b"a=(", b'"a" ', b")", size),
        "an unterminated string": _CMCD + b'a="' + b"x" * size,
        "an unterminated string of escapes": _CMCD + b'a="' + b'\\"' * (size // 2),
        "a string of escapes": _CMCD + b'a="' + b'\\"' * (size // 2) + b'"',
        "an unterminated token": _CMCD + b"a=" + b"x" * size + b"(",
        "an unterminated key": _CMCD + b"x" * size + b"(",
        "unterminated bytes": _CMCD + b"a=:" + b"x" * size,
        "a number": _CMCD + b"a=" + b"9" * size,
        "blanks": _CMCD + b"a=1" + b" " * size + b"!",
        "blanks in a list": _CMCD + b"a=(1" + b" " * size,
        "one key over and over": _CMCD + b"a," * (size // 2) + b"a",
        "one key over and over with values": _CMCD + b"a=?1," * (size // 5) + b"a",
        "keys that need care": _CMCD + b"a=1;b," * (size // 6) + b"a",
        "parameters over and over": _CMCD + b"a=1" + b";a" * (size // 2),
        "empty lines": b"\n" * size,
        "blank lines": b" \n" * (size // 2),
        "short lines": b"a\n" * (size // 2),
        "lines of lists": _repeated(b"", _CMCD + b"a=(%s)\n" % (b"1 " * 300), b"", size),
        "lines of keys": _repeated(b"", _CMCD + b",".join(b"k%d" % n for n in range(100)) + b"\n", b"", size),
        "quotes": _CMCD + b'"' * size,
        "commas": _CMCD + b"," * size,
    }


def _protobuf(size: int) -> dict[str, bytes]:
    request = ExportTraceServiceRequest()
    attribute = request.resource_spans.add().scope_spans.add().spans.add().attributes.add(key="a")
    attribute.value.CopyFrom(AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1)] * (size // 4))))
    empty_spans = b"\x12\x02\x12\x00" * (size // 4)
    return {
        "a list of values": request.SerializeToString(),
        "empty spans": b"\x0a" + _varint(len(empty_spans)) + empty_spans,
        "empty resources": b"\x0a\x00" * (size // 2),
    }


def _varint(number: int) -> bytes:
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def _query(size: int) -> dict[str, bytes]:
    path = b'{"method":"GET","host":"h","path":"/p?%s","status":200,"time_ms":1795176999000}'
    return {
        "queries": _calls(path % b"&".join(b"k%d=1" % n for n in range(1_000)), size),
        "queries of nothing": _calls(path % (b"a&" * 3_900), size),
        "queries of escapes": _calls(path % (b"%41" * 2_600), size),
        "paths": _calls(path.replace(b"/p?%s", b"/" + b"/".join(b"p%d" % n for n in range(20))), size),
        "paths of slashes": _calls(path.replace(b"/p?%s", b"/" * 7_900), size),
    }


def bodies(size: int) -> dict[str, tuple[Parse, dict[str, bytes]]]:
    """By parser: bodies of about so many bytes, by what they are made of."""
    values = json_values(size - 200)
    small = json_values(1_500)
    return {
        "mux": (
            mux.parse_beacons,
            {name: _mux(value) for name, value in values.items()}
            | {f"metadata: {name}": b'{"events":[],"metadata":{"a":%s}}' % value for name, value in values.items()}
            | {
                "events of nothing": _repeated(b'{"events":[', b"{},", b"]}", size),
                "events of digits": _repeated(b'{"events":[', b"1,", b"]}", size),
                "bad events": _repeated(b'{"events":[', _MUX.replace(b'"v"', b'""') + b"0},", b"]}", size),
                "full events": _repeated(
                    b'{"events":[', _MUX + b"0," + b",".join(b'"c%d":1' % n for n in range(60)) + b"},", b"]}", size
                ),
            },
        ),
        "cmcd": (cmcd.parse_records, cmcd_bodies(size)),
        "native": (
            native.parse_beacons,
            {name: _NATIVE + value + b"}}" for name, value in values.items()}
            | {
                "beacons of nothing": _repeated(b'{"beacons":[', b"{},", b"]}", size),
                "beacons of digits": _repeated(b'{"beacons":[', b"1,", b"]}", size),
                "bad beacons": _repeated(
                    b'{"beacons":[', b'{"view_id":"v","time_ms":1.0,"event":"x","q":"\\ud800"},', b"]}", size
                ),
                "full beacons": _repeated(
                    b'{"beacons":[',
                    _NATIVE + b"0," + b",".join(b'"c%d":1' % n for n in range(60)) + b"}},",
                    b"]}",
                    size,
                ),
            },
        ),
        "epas": (
            lambda post, rules: epas.parse_event(post, rules, "new").parsed,
            {name: _EPAS + value + b"}" for name, value in values.items()},
        ),
        "api calls": (
            api_calls.parse_calls,
            {name: _api_call(value) for name, value in values.items()}
            | {f"many calls: {name}": _calls(_api_call(value), size) for name, value in small.items()}
            | _query(size),
        ),
        "otlp json": (
            otlp.parse_spans,
            {
                "attributes": _otlp_attribute(_repeated(b"[", b"{},", b"]", size)),
                "attributes with keys": _otlp_attribute(
                    _repeated(b"[", b'{"key":"a","value":{"intValue":1}},', b"]", size)
                ),
                "a list of values": _otlp_attribute(
                    _repeated(b'[{"key":"a","value":{"arrayValue":{"values":[', b"{},", b"]}}}]", size)
                ),
                "spans of nothing": _repeated(b'{"resourceSpans":[{"scopeSpans":[{"spans":[', b"{},", b"]}]}]}", size),
                "scopes of nothing": _repeated(b'{"resourceSpans":[{"scopeSpans":[', b"{},", b"]}]}", size),
                "resources of nothing": _repeated(b'{"resourceSpans":[', b"{},", b"]}", size),
                "events": _otlp_attribute(_repeated(b'[],"events":[', b"{},", b"]", size)),
            },
        ),
        "otlp protobuf": (otlp.parse_spans, _protobuf(size)),
    }


def packed(body: bytes) -> bytes:
    """As a client would send it that pays for every byte."""
    return gzip.compress(body, 9)


CONTENT_TYPES: Final[Mapping[str, str]] = {"otlp json": otlp.JSON, "otlp protobuf": otlp.PROTOBUF}
