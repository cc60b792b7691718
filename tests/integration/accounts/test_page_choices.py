"""`/v1/saved-views`, `/v1/thresholds`, `/v1/custom-dimensions`: what people choose to see, over HTTP on a real Postgres."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from deploy.local.postgres import Postgres
from services.accounts.core.credentials import Credential
from services.accounts.core.thresholds import DEFAULTS, METRICS
from services.accounts.store.customers import custom_dimensions, saved_views
from shared.directions import WORSE
from tests.integration.accounts.accounts_parts import Site, new_site

pytestmark = pytest.mark.integration

LINK = "/explore?customer=acme&range=24h&metrics=rebuffer_fraction"


@pytest.fixture
async def home(postgres: Postgres) -> AsyncIterator[Site]:
    async with new_site(postgres) as made:
        yield made


async def joined(home: Site, by: Credential, role: str) -> Credential:
    email = f"{role}@example.com"
    made = await home.got("POST", "/v1/invitations", by, {"email": email, "role": role})
    return await home.join(made["link"], email)


async def globex(home: Site, owner: Credential) -> Credential:
    made = await home.got("POST", "/v1/organisations", owner, {"name": "Globex", "owner": "boss@globex.example"})
    return await home.join(made["link"])


async def names(home: Site, who: Credential | str) -> list[tuple[str, bool]]:
    found = (await home.got("GET", "/v1/saved-views", who))["saved_views"]
    return [(one["name"], one["is_shared"]) for one in found]


async def test_a_saved_view_is_seen_by_who_made_it_or_by_the_whole_organisation(home: Site) -> None:
    owner = await home.owner()
    editor, viewer = await joined(home, owner, "editor"), await joined(home, owner, "viewer")
    boss = await globex(home, owner)
    own = await home.got("POST", "/v1/saved-views", viewer, {"name": "Mine", "address": LINK})
    shared = {"name": "Ours", "address": "/errors?range=7d", "is_shared": True}
    assert (await home.ask("POST", "/v1/saved-views", viewer, shared))[0] == 403
    ours = await home.got("POST", "/v1/saved-views", editor, shared)
    assert (ours["made_by"], ours["address"]) == ("editor@example.com", "/errors?range=7d")
    assert [await names(home, who) for who in (viewer, editor, owner, boss)] == [
        [("Mine", False), ("Ours", True)],
        [("Ours", True)],
        [("Ours", True)],
        [],
    ]
    # The same name again has the new address.
    await home.got("POST", "/v1/saved-views", viewer, {"name": "Mine", "address": "/titles"})
    (again, _) = (await home.got("GET", "/v1/saved-views", viewer))["saved_views"]
    assert (again["id"], again["address"]) == (own["id"], "/titles")
    # Somebody else's is as unknown as none; the organisation's is not a viewer's to delete.
    for path, who, status in (
        (f"/v1/saved-views/{own['id']}", owner, 404),
        (f"/v1/saved-views/{ours['id']}", boss, 404),
        ("/v1/saved-views/no-such", owner, 404),
        (f"/v1/saved-views/{ours['id']}", viewer, 403),
    ):
        assert (await home.ask("DELETE", path, who))[0] == status
    await home.got("DELETE", f"/v1/saved-views/{own['id']}", viewer)
    await home.got("DELETE", f"/v1/saved-views/{ours['id']}", editor)
    assert await names(home, viewer) == []
    log = (await home.got("GET", "/v1/audit", owner))["entries"]
    assert [(one["action"], one["target"]) for one in log if "saved_view" in one["action"]] == [
        ("deleted_saved_view", "Ours"),
        ("deleted_saved_view", "Mine"),
        ("saved_view", "Mine"),
        ("saved_view", "Ours"),
        ("saved_view", "Mine"),
    ]


async def test_what_may_not_be_seen_or_is_no_address_of_the_page_is_not_saved(
    home: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await home.owner()
    boss = await globex(home, owner)
    await home.got("POST", "/v1/customers", owner, {"id": "acme", "name": "Acme"})
    assert (await home.ask("POST", "/v1/saved-views", boss, {"name": "a", "address": LINK}))[0] == 404
    # Of what names no customer Postgres would refuse the row.
    for customer in ("%00", "x" * 65, "x" * 7_000, "a:b", "acme%0a"):
        body = {"name": "a", "address": f"/explore?customer={customer}"}
        assert (await home.ask("POST", "/v1/saved-views", owner, body))[0] == 404, customer
    for address in (
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/now#x",
        "",
        "/a b",
        "/" + "x" * 8_000,
        "/now\n",
    ):
        assert (await home.ask("POST", "/v1/saved-views", owner, {"name": "a", "address": address}))[0] == 400, address
    await home.got("POST", "/v1/saved-views", owner, {"name": "acme", "address": LINK, "is_shared": True})
    await home.got("POST", "/v1/saved-views", owner, {"name": "own", "address": "/"})
    # A token for one customer sees no view of another, and has none of its own.
    scopes = {"scopes": ["read_metrics"], "name": "ci"}
    for customers, seen in ((["other"], []), (["acme"], [("acme", True)])):
        token = (await home.got("POST", "/v1/tokens", owner, scopes | {"customers": customers}))["token"]
        assert await names(home, token) == seen
        assert (await home.ask("POST", "/v1/saved-views", token, {"name": "t", "address": "/"}))[0] == 403
    monkeypatch.setattr(saved_views, "_SAVE", saved_views._SAVE.replace(f"< {saved_views.SAVED_MAX}", "< 1"))
    assert (await home.ask("POST", "/v1/saved-views", owner, {"name": "one more", "address": "/"}))[0] == 409
    await home.got("POST", "/v1/saved-views", owner, {"name": "own", "address": "/titles"})


async def test_thresholds_hold_for_a_customer_then_for_all_then_by_default(home: Site) -> None:
    owner = await home.owner()
    viewer, boss = await joined(home, owner, "viewer"), await globex(home, owner)

    async def shown(who: Credential, customer: str) -> dict[str, Any]:
        found = (await home.got("GET", f"/v1/thresholds?customer={customer}", who))["thresholds"]
        return {one.pop("metric"): one for one in found}

    async def choose(customer: str, **given: Any) -> int:
        body = {"metric": "rebuffer_fraction", "customer": customer} | given
        return (await home.ask("PATCH", "/v1/thresholds", owner, body))[0]

    nothing = dict.fromkeys(("good", "bad", "n"))
    defaults = {
        name: {
            "worse": WORSE[name],
            **(DEFAULTS[name]._asdict() if name in DEFAULTS else nothing),
            "of": "default",
        }
        for name in METRICS
    }
    assert await shown(viewer, "") == await shown(viewer, "acme") == defaults
    assert await choose("", good=0.01, bad=0.05, n=50) == 200
    assert await choose("acme", good=0.02, bad=0.1, n=9) == 200
    rest = {"worse": "higher", "good": 0.01, "bad": 0.05, "n": 50, "of": "organisation"}
    assert [(await shown(viewer, one))["rebuffer_fraction"] for one in ("acme", "other", "")] == [
        {"worse": "higher", "good": 0.02, "bad": 0.1, "n": 9, "of": "customer"},
        rest,
        rest,
    ]
    # Another organisation's choice is its own.
    assert await shown(boss, "") == defaults
    assert await choose("acme") == 200
    assert (await shown(viewer, "acme"))["rebuffer_fraction"] == rest
    for wrong in (
        {"good": 0.2, "bad": 0.1, "n": 1},
        {"good": 0.2},
        {"good": 0.2, "bad": 1.1, "n": 1},
        {"good": 0.0, "bad": 0.1, "n": 0},
        {"metric": "no_such", "good": 0.0, "bad": 0.1, "n": 1},
        {"metric": "bitrate_bps", "good": 1e6, "bad": 4e6, "n": 1},
        {"metric": "experience_score", "good": 101, "bad": 60, "n": 1},
    ):
        assert await choose("acme", **wrong) == 400, wrong
    # Of a bitrate less is worse: what is good lies above what is bad. Without a choice it is not judged.
    assert await choose("acme", metric="bitrate_bps", good=4e6, bad=1e6, n=20) == 200
    judged = {"worse": "lower", "good": 4e6, "bad": 1e6, "n": 20, "of": "customer"}
    assert (await shown(viewer, "acme"))["bitrate_bps"] == judged
    assert await choose("acme", metric="bitrate_bps") == 200
    assert (await shown(viewer, "acme"))["bitrate_bps"] == defaults["bitrate_bps"]
    body = {"metric": "rebuffer_fraction", "good": 0.0, "bad": 0.1, "n": 1}
    assert (await home.ask("PATCH", "/v1/thresholds", viewer, body))[0] == 403
    await home.got("POST", "/v1/customers", owner, {"id": "acme", "name": "Acme"})
    assert (await home.ask("PATCH", "/v1/thresholds", boss, body | {"customer": "acme"}))[0] == 404
    assert (await home.ask("GET", "/v1/thresholds?customer=acme", boss))[0] == 404
    log = (await home.got("GET", "/v1/audit", owner))["entries"]
    assert [(one["target"], one["details"]) for one in log if one["action"] == "changed_threshold"][-1] == (
        "",
        {"metric": "rebuffer_fraction", "good": 0.01, "bad": 0.05, "n": 50},
    )


async def test_a_custom_dimension_has_the_title_that_its_organisation_gave_it(
    home: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await home.owner()
    editor, viewer, boss = (
        await joined(home, owner, "editor"),
        await joined(home, owner, "viewer"),
        await globex(home, owner),
    )

    async def shown(who: Credential) -> list[tuple[str, str]]:
        found = (await home.got("GET", "/v1/custom-dimensions", who))["custom_dimensions"]
        return [(one["name"], one["title"]) for one in found]

    async def title(who: Credential, name: str, title: str | None) -> int:
        return (await home.ask("PATCH", "/v1/custom-dimensions", who, {"name": name, "title": title}))[0]

    assert await title(editor, "plan", " Subscription ") == await title(editor, "c2/ü", "Campaign") == 200
    assert await shown(viewer) == [("c2/ü", "Campaign"), ("plan", "Subscription")]
    assert await shown(boss) == []
    assert await title(editor, "plan", "Tariff") == await title(editor, "c2/ü", None) == 200
    assert await shown(viewer) == [("plan", "Tariff")]
    for name, wrong in (
        ("", "a"),
        ("a\x00", "a"),
        ("a\n", "a"),
        ("x" * 101, "a"),
        ("a", " "),
        ("a", "a\x00b"),
        ("a", "x" * 201),
    ):
        assert await title(editor, name, wrong) == 400, (name, wrong)
    assert await title(viewer, "plan", "Mine") == 403
    monkeypatch.setattr(
        custom_dimensions, "_SET", custom_dimensions._SET.replace(f"< {custom_dimensions.TITLES_MAX}", "< 1")
    )
    assert await title(editor, "one more", "One more") == 409
    assert await title(editor, "plan", "Plan") == 200
    log = (await home.got("GET", "/v1/audit", owner))["entries"]
    assert [(one["target"], one["details"]) for one in log if one["action"] == "named_custom_dimension"][:2] == [
        ("plan", {"title": "Plan"}),
        ("c2/ü", {}),
    ]
