"""Signed views: knowing a view's id alone allows neither finishing nor changing it where its customer requires a token."""

import hmac
import re
import time
from pathlib import Path
from typing import Any

import orjson
import pytest

from services.collector.intake.sender.customers import Customer, Customers, CustomersWrong
from services.collector.intake.sender.signing import VALID_SECONDS_MAX, is_signed, token_of
from tests.unit.collector.http.serving import RULES, Served
from tests.unit.collector.intake.bodies import CMCD_RECORD, RECV_TIME_MS, epas_event, mux_body, mux_event, native_beacon

KEY, OTHER_KEY = "k" * 32, "o" * 32
NOW = RECV_TIME_MS // 1_000
TEXT = (Path(__file__).parents[4] / "docs" / "clients.md").read_text()


def signing(served: Served, **terms: Any) -> None:
    customers = {"acme": Customer(**({"signing_keys": (KEY,)} | terms)), "other": Customer()}
    served.rules = RULES.model_copy(update={"customers": Customers(customers)})


def token(view_id: str = "view-1", expires: int = NOW + 60, key: str = KEY, customer_id: str = "acme") -> str:
    return token_of(key, customer_id, view_id, expires)


async def posted(served: Served, path: str, document: Any) -> tuple[int, Any]:
    data = document if isinstance(document, bytes) else orjson.dumps(document)
    async with served.client.post(path, data=data) as answer:
        return answer.status, orjson.loads(await answer.read() or b"null")


async def test_a_beacon_says_whether_its_view_was_signed(served: Served) -> None:
    signing(served)
    for query in (f"key=acme&token={token()}", "key=acme", "key=acme&token=x.y", "key=other"):
        assert (await posted(served, f"/v1/beacons?{query}", native_beacon()))[0] == 200
    assert [beacon.signed for _, beacon in served.stored()] == [True, False, False, None]


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "nothing",
        token("view-2"),
        token(expires=NOW),
        token(expires=NOW + VALID_SECONDS_MAX + 1),
        token(key=OTHER_KEY),
        token(customer_id="other"),
        token().replace(f"{NOW + 60}", f"{NOW + 61}"),
        token().upper(),
        "9" * 5_000,
    ],
)
async def test_a_view_that_is_not_signed_is_rejected_where_its_customer_requires_it(
    served: Served, forged: str
) -> None:
    signing(served, signed_views="require")
    end = native_beacon(event="error", attrs={"error_code": "forged"})
    status, answer = await posted(served, f"/v1/beacons?key=acme&token={forged}", end)
    assert (status, answer["beacons"][0]["reason"]) == (200, "unsigned")
    ((topic, headers),) = served.stored()
    assert (topic, headers["reason"]) == ("rejected", b"unsigned")
    assert KEY.encode() not in served.sink.records[0].value


async def test_only_the_views_that_a_token_is_of_are_accepted_each_in_its_place(served: Served) -> None:
    signing(served, signed_views="require")
    batch = {"beacons": [native_beacon(view_id="view-2"), native_beacon(), {"event": 1}, native_beacon(seq=2)]}
    status, answer = await posted(served, f"/v1/beacons?key=acme&token={token()}", batch)
    assert status == 200
    assert [each.get("reason", each["status"]) for each in answer["beacons"]] == [
        "unsigned",
        "stored",
        "invalid",
        "stored",
    ]


async def test_every_client_that_can_choose_its_views_id_can_sign_it(served: Served) -> None:
    signing(served, signed_views="require")
    async with served.client.post(f"/cmcd/acme?token={token('s-1')}", data=CMCD_RECORD.encode()) as answer:
        assert answer.status == 204
    assert (await posted(served, f"/epas/acme?token={token('session-1')}", epas_event()))[0] == 200
    pixel = f"/v1/beacons.gif?key=acme&token={token()}&view_id=view-1&event=play&time_ms=1795176999000"
    async with served.client.get(pixel) as answer:
        assert answer.status == 200
    stored = served.stored()
    assert [(topic, beacon.signed) for topic, beacon in stored] == [("beacons", True)] * 3
    assert stored[2][1].attrs == {}
    # The SDKs of Mux make the view's id themselves.
    assert (await posted(served, "/", mux_body(mux_event())))[0] == 200
    assert (await posted(served, "/epas/acme", epas_event()))[0] == 401
    assert [headers["reason"] for topic, headers in served.stored() if topic == "rejected"] == [b"unsigned"] * 2


def test_two_signing_keys_are_valid_while_one_replaces_the_other() -> None:
    terms = Customer(signing_keys=(OTHER_KEY, KEY))
    for key in (KEY, OTHER_KEY):
        assert is_signed(token(key=key), "acme", "view-1", terms, RECV_TIME_MS)
    assert not is_signed(token(key=KEY), "acme", "view-1", Customer(signing_keys=(OTHER_KEY,)), RECV_TIME_MS)


def test_a_customer_cannot_require_what_it_has_no_key_for() -> None:
    with pytest.raises(CustomersWrong, match="acme requires signed views"):
        Customers({"acme": Customer(signed_views="require")})


def test_the_documents_recipe_makes_the_token_of_its_example() -> None:
    (recipe,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    (example,) = re.findall(
        r"customer `(\w+)`, view `([\w-]+)`, `expires` (\d+) and key `(\w+)`.*?`([\d.0-9a-f]+)`", TEXT, re.S
    )
    customer_id, view_id, expires, key, expected = example
    made: dict[str, Any] = {}
    exec(recipe, made)
    assert made["token"](key, customer_id, view_id, int(expires)) == expected
    assert hmac.compare_digest(expected, token_of(key, customer_id, view_id, int(expires)))
    now = int(time.time())
    fresh = made["token"](KEY, "acme", "view-1", now + 3_600)
    assert is_signed(fresh, "acme", "view-1", Customer(signing_keys=(KEY,)), now * 1_000)
