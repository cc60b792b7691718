"""Passwords, second factors and tokens by `/v1`, over HTTP on a real Postgres."""

from collections.abc import AsyncIterator

import pyotp
import pytest

from deploy.local.postgres import Postgres
from tests.integration.accounts.accounts_parts import PASSWORD, Site, invited, new_site

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


async def test_a_token_gives_no_role_that_may_do_more_or_lasts_longer_than_itself(home: Site) -> None:
    owner = await home.owner()
    await invited(home, owner, "admin@example.com", "admin")
    ids = {one["email"]: one["id"] for one in (await home.got("GET", "/v1/people", owner))["people"]}
    path = f"/v1/people/{ids['admin@example.com']}"
    reading = ["manage", "read_metrics", "read_views"]
    tokens = {}
    for name, body in {
        "lasting": {"scopes": reading},
        "ending": {"scopes": reading, "days": 1},
        "managing": {"scopes": ["manage"]},
    }.items():
        tokens[name] = (await home.got("POST", "/v1/tokens", owner, {"name": name} | body))["token"]
    for name, roles in (("lasting", ["viewer"]), ("ending", []), ("managing", [])):
        for role in ("viewer", "editor", "admin", "owner"):
            invitation = {"email": f"{name}-{role}@example.com", "role": role}
            status, _ = await home.ask("POST", "/v1/invitations", tokens[name], invitation)
            assert status == (201 if role in roles else 403), (name, role)
            if role not in roles:
                assert (await home.ask("PATCH", path, tokens[name], {"role": role}))[0] == 403, (name, role)
    # A new organisation has an owner who stays, too.
    organisation = {"name": "Globex", "owner": "boss@globex.example"}
    assert (await home.ask("POST", "/v1/organisations", tokens["ending"], organisation))[0] == 403
    made = await home.got("POST", "/v1/organisations", tokens["lasting"], organisation)
    again = {"email": "boss@globex.example"}
    invitations = f"/v1/organisations/{made['id']}/invitations"
    assert (await home.ask("POST", invitations, tokens["ending"], again))[0] == 403
    # To take a role away needs no end of one's own.
    await home.got("DELETE", path, tokens["ending"])


async def test_what_a_person_made_ends_with_the_right_to_make_it(home: Site) -> None:
    owner = await home.owner()
    admins = {name: await invited(home, owner, f"{name}@example.com", "admin") for name in ("ann", "bob")}
    ids = {one["email"]: one["id"] for one in (await home.got("GET", "/v1/people", owner))["people"]}
    body = {"name": "x", "scopes": ["manage", "read_metrics", "read_views"]}
    kept = (await home.got("POST", "/v1/tokens", owner, body))["token"]
    made, links = {}, {}
    for name, admin in admins.items():
        token = (await home.got("POST", "/v1/tokens", admin, body))["token"]
        # What a token makes is its maker's too.
        made[name] = [token, (await home.got("POST", "/v1/tokens", token, body))["token"]]
        organisation = {"name": name, "owner": f"owner@{name}.example"}
        links[name] = [
            (await home.got("POST", "/v1/invitations", who, {"email": f"{number}@{name}.example", "role": "viewer"}))[
                "link"
            ]
            for number, who in enumerate((admin, token))
        ] + [(await home.got("POST", "/v1/organisations", admin, organisation))["link"]]
    await home.got("POST", "/v1/invitations", owner, {"email": "late@example.com", "role": "viewer"})
    for method, name, role in (("PATCH", "ann", {"role": "editor"}), ("DELETE", "bob", None)):
        # An owner may do what an admin may.
        await home.got("PATCH", f"/v1/people/{ids[f'{name}@example.com']}", owner, {"role": "owner"})
        assert [(await home.ask("GET", "/v1/people", token))[0] for token in made[name]] == [200, 200]
        path = f"/v1/people/{ids[f'{name}@example.com']}"
        assert await home.got(method, path, owner, role) == {"tokens": 2, "invitations": 3}
        assert [(await home.ask("GET", "/v1/people", token))[0] for token in made[name]] == [401, 401]
        for link in links[name]:
            use = {"link": link.partition("#")[2], "password": PASSWORD}
            assert (await home.ask("POST", "/v1/link/use", None, use))[0] == 410
    # Others' stay.
    assert (await home.ask("GET", "/v1/people", kept))[0] == 200
    (left,) = (await home.got("GET", "/v1/invitations", owner))["invitations"]
    assert left["email"] == "late@example.com"
    entries = (await home.got("GET", "/v1/audit?action=revoked_token", owner))["entries"]
    assert [one["actor"] for one in entries] == ["owner@example.com"] * 4
