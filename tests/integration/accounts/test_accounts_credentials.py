"""Passwords, second factors and tokens by `/v1`, over HTTP on a real Postgres."""

from collections.abc import AsyncIterator

import pyotp
import pytest

from deploy.local.postgres import Postgres
from tests.integration.accounts.accounts_parts import PASSWORD, Site, new_site

pytestmark = pytest.mark.integration

#: A Tuesday in 2026.
NOW = 1_795_000_000.0


@pytest.fixture
async def home(postgres: Postgres) -> AsyncIterator[Site]:
    async with new_site(postgres, now_seconds=lambda: NOW) as made:
        yield made


async def test_a_password_is_changed_with_the_present_one_and_other_sessions_end(home: Site) -> None:
    owner = await home.owner()
    other = await home.accounts.log_in("owner@example.com", PASSWORD, address=None, agent="")
    path = "/v1/profile/password"
    assert (await home.ask("POST", path, owner, {"present": "wrong", "password": "a new and long one"}))[0] == 403
    assert (await home.ask("POST", path, owner, {"present": PASSWORD, "password": "short"}))[0] == 400
    await home.got("POST", path, owner, {"present": PASSWORD, "password": "a new and long one"})
    assert (await home.ask("GET", "/v1/profile", other))[0] == 401
    assert (await home.got("GET", "/v1/profile", owner))["has_password"] is True
    body = {"email": "owner@example.com", "password": PASSWORD}
    assert (await home.ask("POST", "/v1/login", None, body))[0] == 401
    assert (await home.ask("POST", "/v1/login", None, body | {"password": "a new and long one"}))[0] == 200


async def test_a_second_factor_is_asked_for_and_each_code_works_once(home: Site) -> None:
    owner = await home.owner()
    path = "/v1/profile/second-factor"
    assert (await home.ask("POST", path, owner, {"present": "wrong"}))[0] == 403
    begun = await home.got("POST", path, owner, {"present": PASSWORD})
    assert begun["address"].startswith("otpauth://totp/Playhead:owner%40example.com?secret=")
    codes = pyotp.TOTP(begun["secret"])
    login = {"email": "owner@example.com", "password": PASSWORD}
    # It is not in force before a code has shown that the person has it.
    assert (await home.ask("POST", "/v1/login", None, login))[0] == 200
    assert (await home.ask("POST", f"{path}/confirm", owner, {"code": "000000"}))[0] == 403
    recovery = (await home.got("POST", f"{path}/confirm", owner, {"code": codes.at(NOW - 30)}))["codes"]
    status, problem = await home.ask("POST", "/v1/login", None, login)
    assert (status, problem["type"]) == (401, "urn:playhead:problem:code-needed")
    assert (await home.ask("POST", "/v1/login", None, login | {"code": codes.at(NOW - 30)}))[0] == 401
    assert (await home.ask("POST", "/v1/login", None, login | {"code": codes.at(NOW + 90)}))[0] == 401
    assert (await home.ask("POST", "/v1/login", None, login | {"code": codes.at(NOW)}))[0] == 200
    assert (await home.ask("POST", "/v1/login", None, login | {"code": codes.at(NOW)}))[0] == 401
    assert (await home.ask("POST", "/v1/login", None, login | {"code": recovery[0]}))[0] == 200
    assert (await home.ask("POST", "/v1/login", None, login | {"code": recovery[0]}))[0] == 401
    assert (await home.got("GET", "/v1/profile", owner))["recovery_codes"] == 9
    # Codes are few: tries of them are counted as those of passwords are.
    assert (await home.ask("POST", "/v1/login", None, login | {"code": codes.at(NOW + 30)}))[0] == 429
    assert begun["secret"] not in str(home.rows("SELECT * FROM accounts.audit"))
    home.rows("DELETE FROM accounts.attempts RETURNING 1")
    await home.got("POST", f"{path}/end", owner, {"present": PASSWORD})
    assert (await home.ask("POST", "/v1/login", None, login))[0] == 200


async def test_tokens_are_made_listed_and_revoked_by_who_may(home: Site) -> None:
    owner = await home.owner()
    made = await home.got(
        "POST", "/v1/tokens", owner, {"name": "ops", "scopes": ["manage"], "customers": ["acme"], "days": 9}
    )
    token = made["token"]
    assert (await home.ask("GET", "/v1/tokens", token))[0] == 403
    (listed,) = (await home.got("GET", "/v1/tokens", owner))["tokens"]
    assert (listed["id"], listed["scopes"], listed["customers"]) == (made["id"], ["manage"], ["acme"])
    assert listed["used_ms"] is not None
    for body, status in (
        ({"name": "x", "scopes": ["read_views"], "customers": ["acme"]}, 403),
        ({"name": "x", "scopes": ["manage"]}, 403),
        ({"name": "x", "scopes": ["manage"], "customers": ["globex"]}, 404),
        ({"name": "x", "scopes": ["rule"], "customers": ["acme"]}, 400),
        ({"name": "x", "scopes": []}, 400),
        ({"name": "x", "scopes": ["manage"], "customers": ["acme"], "extra": 1}, 400),
    ):
        assert (await home.ask("POST", "/v1/tokens", token, body))[0] == status, body
    assert (await home.ask("GET", "/v1/profile", token))[0] == 403
    await home.got("DELETE", f"/v1/tokens/{made['id']}", owner)
    assert (await home.ask("GET", "/v1/tokens", token))[0] == 401


async def test_a_token_makes_none_that_ends_later_than_itself(home: Site) -> None:
    owner = await home.owner()
    body = {"name": "x", "scopes": ["manage"]}
    maker = await home.got("POST", "/v1/tokens", owner, body | {"days": 2})
    for later in (3, 2, None):
        status, problem = await home.ask("POST", "/v1/tokens", maker["token"], body | {"days": later})
        assert (status, problem["type"]) == (403, "urn:playhead:problem:permission"), later
        assert "ends later than itself" in problem["detail"]
    made = await home.got("POST", "/v1/tokens", maker["token"], body)
    earlier = await home.got("POST", "/v1/tokens", maker["token"], body | {"days": 1})
    # What it makes has its end too, and passes it on.
    status, _ = await home.ask("POST", "/v1/tokens", made["token"], body | {"days": None})
    assert status == 403
    third = await home.got("POST", "/v1/tokens", made["token"], body)
    listed = (await home.got("GET", "/v1/tokens", owner))["tokens"]
    ends = {one["id"]: one["expires_ms"] for one in listed}
    assert len(ends) == 4
    assert ends[made["id"]] == ends[third["id"]] == ends[maker["id"]]
    assert ends[earlier["id"]] < ends[maker["id"]]
    entries = (await home.got("GET", "/v1/audit?action=made_token", owner))["entries"]
    assert sorted(one["details"]["expires_ms"] for one in entries) == sorted(ends.values())


async def test_people_and_tokens_without_an_end_give_any_end(home: Site) -> None:
    owner = await home.owner()
    body = {"name": "x", "scopes": ["manage"]}
    maker = await home.got("POST", "/v1/tokens", owner, body)
    for who in (owner, maker["token"]):
        for given, has_end in (({}, False), ({"days": None}, False), ({"days": 3_650}, True)):
            made = await home.got("POST", "/v1/tokens", who, body | given)
            listed = (await home.got("GET", "/v1/tokens", owner))["tokens"]
            assert [one["expires_ms"] is not None for one in listed if one["id"] == made["id"]] == [has_end]
