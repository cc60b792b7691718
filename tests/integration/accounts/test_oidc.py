"""Logins at a real OpenID provider (npm's oidc-provider), by a client that follows its pages as a browser does."""

import re
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import aiohttp
import pytest
from yarl import URL

from deploy.local.ports import free_port
from deploy.local.postgres import Postgres
from deploy.local.process import Child
from services.accounts.core.credentials import Kind
from services.accounts.http.external import CALLBACK_PATH, External
from services.accounts.http.guard import Cookie
from services.accounts.provider import Provider, ProviderRefused
from services.accounts.service import LoginWrong
from services.accounts.store import schema
from services.accounts.store.logins.external import Begun
from tests.integration.accounts.accounts_parts import PASSWORD, Site, new_site, site

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[3]
PACKAGES = ROOT / ".local" / "oidc" / "node_modules"
SECRET = "a secret: of sixteen+"
PORT = free_port()
BACK = f"http://127.0.0.1:{PORT}{CALLBACK_PATH}"


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder, port = tmp_path_factory.mktemp("oidc"), free_port()
    script = Path(__file__).with_name("oidc_provider.mjs")
    child = Child("oidc", ["node", str(script), str(port), BACK, str(PACKAGES)], log_file=folder / "oidc.log")
    child.start()
    child.wait_until(lambda: listens(port), 60, "listening")
    yield f"http://127.0.0.1:{port}"
    child.kill()


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
async def home(postgres: Postgres, issuer: str) -> AsyncIterator[Site]:
    external = External(Provider(issuer, "playhead", SECRET, BACK), "Acme ID")
    async with new_site(postgres, external=external, port=PORT) as made:
        yield made


async def authorized(client: aiohttp.ClientSession, address: URL, login: str) -> URL:
    """Logs in and agrees at the provider's pages, from this address on; where they lead back to."""
    while True:
        async with client.get(address, allow_redirects=False) as answer:
            text = await answer.text()
        if answer.status in {302, 303}:
            address = address.join(URL(answer.headers["Location"]))
            if address.path == CALLBACK_PATH:
                return address
            continue
        assert answer.status == 200, text
        action, prompt = re.search(r'action="([^"]+)"', text), re.search(r'name="prompt" value="(\w+)"', text)
        assert action is not None
        assert prompt is not None
        form = {"prompt": prompt[1], "login": login, "password": "any"}
        async with client.post(address.join(URL(action[1])), data=form, allow_redirects=False) as answer:
            address = address.join(URL(answer.headers["Location"]))


async def log_in(login: str, to: str = "/") -> tuple[str, str | None]:
    """Where a login at the provider ends, and the text of its session."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        back = await authorized(client, URL(f"http://127.0.0.1:{PORT}/login/there").with_query(to=to), login)
        async with client.get(back, allow_redirects=False) as answer:
            cookie = answer.cookies.get(Cookie(is_secure=False).name)
            return answer.headers["Location"], cookie.value if cookie is not None else None


async def test_an_invited_person_joins_by_a_login_at_the_provider_and_comes_back_without_an_invitation(
    home: Site,
) -> None:
    owner = await home.owner()
    assert await home.got("GET", "/v1/login/ways", None) == {"provider": "Acme ID"}
    assert await log_in("boss") == ("/login?failed=unknown", None)
    await home.got("POST", "/v1/invitations", owner, {"email": "boss@globex.example", "role": "editor"})
    for _ in range(2):
        place, session = await log_in("boss", "/replay?customer=acme")
        assert place == "/replay?customer=acme"
        assert session is not None
        found = await home.got("GET", "/v1/session", home.session_in(session))
        assert (found["name"], found["role"]) == ("boss@globex.example", "editor")
    assert (await home.got("GET", "/v1/invitations", owner))["invitations"] == []
    entries = (await home.got("GET", "/v1/audit", owner))["entries"]
    assert [one["action"] for one in entries][:3] == ["logged_in", "logged_in", "joined"]
    assert entries[0]["details"]["by"] == "provider"
    # Of the three that began, at most the one that did not end is counted for the address.
    assert home.rows("SELECT max(failures) <= 1 FROM accounts.attempts") == [(True,)]


async def test_a_verified_address_is_the_person_who_has_it_and_an_unverified_one_is_nobody(home: Site) -> None:
    made = await home.owner()
    assert await log_in("liar") == ("/login?failed=unknown", None)
    assert await log_in("stranger") == ("/login?failed=unknown", None)
    place, session = await log_in("owner", "//evil.example/")
    assert place == "/"
    assert session is not None
    assert (await home.got("GET", "/v1/session", home.session_in(session)))["role"] == "owner"
    # Whoever made the account may not be who has the address: its password and sessions have ended.
    assert (await home.ask("GET", "/v1/session", made))[0] == 401
    with pytest.raises(LoginWrong):
        await home.accounts.log_in("owner@example.com", PASSWORD, address=None, agent="")
    # A later invitation is accepted by the next login at the provider.
    boss = home.session_in(session)
    other = await home.got("POST", "/v1/organisations", boss, {"name": "Globex", "owner": "owner@example.com"})
    assert other["link"]
    await log_in("owner")
    organisations = (await home.got("GET", "/v1/organisations", boss))["organisations"]
    assert {one["name"]: one["is_member"] for one in organisations} == {"Home": True, "Globex": True}


async def test_an_account_that_begins_again_by_a_link_ends_the_links_password_at_the_next_login_at_the_provider(
    home: Site,
) -> None:
    owner, email = await home.owner(), "boss@globex.example"
    await home.got("POST", "/v1/invitations", owner, {"email": email, "role": "viewer"})
    _, session = await log_in("boss")
    assert session is not None
    (boss,) = [one for one in (await home.got("GET", "/v1/people", owner))["people"] if one["email"] == email]
    await home.got("DELETE", f"/v1/people/{boss['id']}", owner)
    # Of no organisation any more, it begins again, by whoever opens the link.
    again = await home.got("POST", "/v1/invitations", owner, {"email": email, "role": "viewer"})
    opened = await home.join(again["link"])
    assert (await home.got("GET", "/v1/session", opened))["name"] == email
    assert home.rows("SELECT count(*) FROM accounts.external_identities") == [(0,)]
    # The holder of the address logs in at the provider, a first time again.
    place, session = await log_in("boss")
    assert place == "/"
    assert session is not None
    assert (await home.got("GET", "/v1/session", home.session_in(session)))["name"] == email
    assert (await home.ask("GET", "/v1/session", opened))[0] == 401
    with pytest.raises(LoginWrong):
        await home.accounts.log_in(email, PASSWORD, address=None, agent="")


async def test_an_answer_counts_once_in_the_browser_that_asked(home: Site) -> None:
    await home.owner()
    start = URL(f"http://127.0.0.1:{PORT}/login/there")
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as mine,
        aiohttp.ClientSession() as other,
    ):
        back = await authorized(mine, start, "owner")
        for wrong in (back.update_query(state="0" * 16), back.update_query(code=""), back.with_query(error="denied")):
            async with other.get(wrong, allow_redirects=False) as answer:
                assert answer.headers["Location"] == "/login?failed=refused"
        # A stranger's browser that is led here has not begun this login.
        async with other.get(back, allow_redirects=False) as answer:
            assert answer.headers["Location"] == "/login?failed=refused"
        kept = {name: one.value for name, one in mine.cookie_jar.filter_cookies(URL(BACK)).items()}
        places = []
        for _ in range(2):
            async with other.get(back, cookies=kept, allow_redirects=False) as answer:
                places.append(answer.headers["Location"])
        assert places == ["/", "/login?failed=refused"]


async def test_a_token_that_does_not_hold_lets_nobody_in(issuer: str) -> None:
    provider, begun = Provider(issuer, "playhead", SECRET, BACK), Begun("n" * 43, "v" * 43, "/")

    async def code(given: Begun) -> str:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
            back = await authorized(client, URL(await provider.login_address("s", given), encoded=True), "owner")
            return back.query["code"]

    assert (await provider.claims(await code(begun), begun)).email == "Owner@example.com"
    for wrong in (replace(begun, nonce="m" * 43), replace(begun, verifier="w" * 43)):
        with pytest.raises(ProviderRefused):
            await provider.claims(await code(begun), wrong)
    late = Provider(issuer, "playhead", SECRET, BACK, now_seconds=lambda: 4_000_000_000.0)
    with pytest.raises(ProviderRefused, match="Expired"):
        await late.claims(await code(begun), begun)
    for other in (
        Provider(issuer, "playhead", "another secret of it", BACK),
        Provider(f"{issuer}/", "playhead", SECRET, BACK),
    ):
        with pytest.raises(ProviderRefused):
            await other.claims(await code(begun), begun)


async def test_a_provider_that_is_away_keeps_nobody_from_the_page(postgres: Postgres) -> None:
    dsn = postgres.create_database(f"oidc_{uuid4().hex}")
    schema.migrate(dsn)
    away = External(Provider(f"http://127.0.0.1:{free_port()}", "playhead", SECRET, BACK), "Acme ID")
    async with site(dsn, external=away) as made, made.client.get("/login/there", allow_redirects=False) as answer:
        assert answer.headers["Location"] == "/login?failed=away"
        assert Kind.EXTERNAL not in str(answer.cookies)
    async with site(dsn) as made, made.client.get("/login/there", allow_redirects=False) as answer:
        assert answer.headers["Location"] == "/login?failed=off"
