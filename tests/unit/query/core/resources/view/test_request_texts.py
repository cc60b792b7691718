"""The texts of a request that an answer may have: no secrets, and no characters that mislead a reader."""

from typing import Any

import msgspec
import pytest

from tests.unit.processor.applications.video_views.beacons import mux, watch
from tests.unit.query.core.resources.view.test_requests_of_view import listed, rows_of


@pytest.mark.parametrize(
    ("url", "host", "file"),
    [
        ("https://user:secret@cdn.example:8443/a/secret/seg-1.ts?token=secret#secret", "cdn.example", "seg-1.ts"),
        ("https://cdn.example/hdnts=exp=1~hmac=secret/seg-1.ts;sig=secret", "cdn.example", None),
        ("https://cdn.example/seg-1.ts/token=secret", "cdn.example", None),
        ("https://cdn.example/seg-1.ts/token%3Dsecret", "cdn.example", None),
        (f"https://cdn.example/{'secret' * 20}", "cdn.example", None),
        ("seg-2.ts?token=secret", None, "seg-2.ts"),
        ("data:video/mp4;base64,secret", None, None),
        ("blob:https://page.example/secret", None, None),
        ("https://[secret/", None, None),
        ("?token=secret", None, None),
        (["secret"], None, None),
        (7, None, None),
    ],
)
def test_of_a_url_host_and_file_alone_are_told(url: Any, host: str | None, file: str | None) -> None:
    beacons = [*watch(), mux(11, "request", 14_000, request_url=url, request_error_code="https://x/?secret")]
    beacons[-1] = msgspec.structs.replace(beacons[-1], source_event="requestfailed")
    (row,) = rows_of(beacons)
    found = listed(row, beacons)
    (one,) = found.requests
    assert (one.host, one.file, one.code) == (host, file, None)
    assert b"secret" not in msgspec.json.encode(found)


def test_a_name_of_a_host_is_no_address() -> None:
    for named in ("user:secret@cdn.example", "cdn.example/secret", "cdn.example?secret", ["secret"], 5):
        beacons = [*watch(), mux(11, "request", 14_000, request_hostname=named, request_type={"a": "secret"})]
        (row,) = rows_of(beacons)
        assert (listed(row, beacons).requests[0].host, listed(row, beacons).requests[0].kind) == (None, None)


@pytest.mark.parametrize(
    ("value", "kind"),
    [("video", "video"), ("k" * 150, "k" * 100), ("a\u202eb", None), ("a\nb", None), ("https://x/?s", None), (5, None)],
)
def test_a_kind_is_a_short_name(value: Any, kind: str | None) -> None:
    (row,) = rows_of(watch())
    assert [one.kind for one in listed(row, [mux(11, "request", 14_000, request_type=value)]).requests] == [kind]


@pytest.mark.parametrize(
    ("value", "code"),
    [(404, "404"), ("e-5.x 1", "e-5.x 1"), (True, None), ("", None), ("٤", None), ("x" * 51, None), (None, None)],
)
def test_a_code_is_a_short_word(value: Any, code: str | None) -> None:
    (row,) = rows_of(watch())
    beacon = msgspec.structs.replace(mux(11, "request", 14_000, request_error_code=value), source_event="requestfailed")
    assert [one.code for one in listed(row, [beacon]).requests] == [code]


@pytest.mark.parametrize(
    ("url", "host", "file"),
    [
        # What a page could be broken or misled by.
        (f"https://{'h' * 10_000}/1.ts", None, "1.ts"),
        ("https://c\u202edn.example/1.ts", None, "1.ts"),
        ("https://cdn.example/\u202est.1", "cdn.example", None),
        ("https://cdn.example/séction.ts", "cdn.example", None),
        # What may be secret.
        ("https://user:sec/ret@cdn.example/1.ts", None, None),
        ("https://user:sec?ret@cdn.example/1.ts", None, None),
        ("https://user:sec#ret@cdn.example/1.ts", None, None),
        ("https://secret/x@cdn.example/1.ts", None, None),
        ("https://cdn.example\\@secret/1.ts", None, None),
        ("https:\\\\cdn.example\\secret\\1.ts", None, None),
        *((f"https://cdn.example/se{mark}cret.ts", "cdn.example", None) for mark in "%&,*:=;!$'()|"),
        ("https://cdn.example/0123456789abcdef0123456789abcdef", "cdn.example", None),
        (
            "https://cdn.example/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.dozjgNryP4J3jVmNHl0w5N_XgL",
            "cdn.example",
            None,
        ),
        ("https://cdn.example/eyJhbGciOiJI.eyJzdWIiOiIxIn0", "cdn.example", None),
        ("https://cdn.example/12.345", "cdn.example", None),
        # What is a name.
        ("https://cdn.example/Manifest?x", "cdn.example", "Manifest"),
        ("https://cdn.example/seg_1-2~3+4.m4s", "cdn.example", "seg_1-2~3+4.m4s"),
        ("https://cdn.example/a/1.3gp", "cdn.example", "1.3gp"),
        ("https://[2001:db8::1]:443/live.m3u8", "2001:db8::1", "live.m3u8"),
    ],
)
def test_host_and_file_are_short_names(url: str, host: str | None, file: str | None) -> None:
    (row,) = rows_of(watch())
    (one,) = listed(row, [mux(11, "request", 14_000, request_url=url)]).requests
    assert (one.host, one.file) == (host, file)
