"""Stories of users: made, read, changed, deleted; each in three weathers."""

import base64
import json
from typing import Any

import pytest

from services.processor.engine.driver import Weather
from shared import codec, topics
from shared.schemas.user_command import SCHEMA_VERSION, Claim, Released, UserCommand
from tests.unit.processor.applications.users.table import Table, keeping

#: What decodes to lists within lists, deeper than a decoder goes.
DEEP_CURSOR = base64.urlsafe_b64encode(b"\x93\x00\xc4\x00" + b"\x91" * 4_000).decode()
ADA = {"email": "Ada@Example.org", "name": "Ada", "attributes": {"team": "red"}}


def faults(answer: tuple[int, Any]) -> list[str]:
    """What a problem is about."""
    return [one.get("pointer") or one.get("header") or one.get("parameter") for one in answer[1]["errors"]]


def test_a_user_that_was_made_is_found_by_id_by_address_and_in_the_list(table: Table) -> None:
    made = table.call("POST", "/users", ADA)
    status, user = made.answer
    assert status == 201
    assert (user["email"], user["name"], user["attributes"], user["version"]) == (*ADA.values(), 1)
    assert made.headers["ETag"] == '"1"'
    assert made.headers["Location"] == f"/users/{user['id']}"
    found = table.call("GET", made.headers["Location"])
    assert found.answer == (200, user)
    assert found.headers["ETag"] == '"1"'
    assert table.call("GET", "/users?email=ada@example.ORG").answer == (200, {"users": [user], "next_cursor": None})
    assert table.listed() == [user]
    assert table.published() == {user["id"]: user}


def test_an_address_has_one_user_until_that_gives_it_up(table: Table) -> None:
    user_id = table.made("ada@example.org")
    refused = table.call("POST", "/users", ADA)
    assert (refused.answer[0], faults(refused.answer)) == (409, ["#/email"])
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert table.call("PUT", f"/users/{user_id}", {"email": "b@example.org", "name": "B"}).answer[0] == 200
    assert table.call("GET", "/users?email=ada@example.org").answer[1]["users"] == []
    other_id = table.made("ada@example.org")
    assert table.call("PATCH", f"/users/{user_id}", {"email": "ADA@example.org"}).answer[0] == 409
    assert table.call("DELETE", f"/users/{other_id}").answer == (204, None)
    back = table.call("PATCH", f"/users/{user_id}", {"email": "ADA@example.org"}).answer
    assert (back[0], back[1]["email"], back[1]["version"]) == (200, "ADA@example.org", 3)
    assert (table.rows("email_claims"), table.rows("changes")) == (1, 0)


def test_an_address_in_other_letters_is_the_same_and_needs_no_claim(table: Table) -> None:
    user_id = table.made("ada@example.org")
    changed = table.call("PATCH", f"/users/{user_id}", {"email": "ADA@example.org"}).answer
    assert (changed[0], changed[1]["email"]) == (200, "ADA@example.org")
    table.call("DELETE", f"/users/{user_id}")
    table.made("ada@example.org")


def test_a_deleted_user_is_gone_everywhere(table: Table) -> None:
    user_id = table.made("ada@example.org")
    assert table.call("DELETE", f"/users/{user_id}").answer == (204, None)
    for method in ("GET", "DELETE"):
        status, problem = table.call(method, f"/users/{user_id}").answer
        assert (status, problem["type"], user_id in problem["detail"]) == (
            404,
            "urn:playhead:problem:no-such-user",
            True,
        )
    assert table.call("PUT", f"/users/{user_id}", ADA).answer[0] == 404
    assert table.listed() == []
    assert table.published() == {user_id: None}
    assert (table.rows("users"), table.rows("email_claims")) == (0, 0)


def test_a_patch_changes_what_it_names(table: Table) -> None:
    user_id = table.call("POST", "/users", ADA | {"attributes": {"a": "1", "b": "2"}}).answer[1]["id"]
    path, merge = f"/users/{user_id}", {"Content_Type": "application/merge-patch+json; charset=utf-8"}
    assert table.call("PATCH", path, {"name": "Bea"}, **merge).answer[1]["attributes"] == {"a": "1", "b": "2"}
    assert table.call("PATCH", path, {"attributes": {"a": None, "c": "3"}}).answer[1]["attributes"] == {
        "b": "2",
        "c": "3",
    }
    assert table.call("PATCH", path, {"attributes": None}).answer[1]["attributes"] == {}
    user = table.call("GET", path).answer[1]
    assert (user["name"], user["email"], user["version"]) == ("Bea", ADA["email"], 4)
    table.call("PATCH", path, {"attributes": {f"a{number}": "x" for number in range(10)}})
    too_many = table.call("PATCH", path, {"attributes": {f"b{number}": "x" for number in range(10)}}).answer
    assert (too_many[0], faults(too_many)) == (422, ["#/attributes"])


def test_a_write_may_want_a_version(table: Table) -> None:
    path = f"/users/{table.made('ada@example.org')}"
    assert table.call("PATCH", path, {"name": "B"}, If_Match='"1"').answer[0] == 200
    for method, body in (("PATCH", {"name": "C"}), ("PUT", ADA), ("DELETE", None)):
        stale = table.call(method, path, body, If_Match='"1"').answer
        assert (stale[0], faults(stale), '"2"' in stale[1]["errors"][0]["detail"]) == (412, ["If-Match"], True)
        assert table.call(method, path, body, If_Match='W/"2"').answer[0] == 412, "If-Match compares strongly"
        assert table.call(method, path, body, If_Match="2").answer[0] == 400
    assert table.call("PATCH", path, {"name": "C"}, If_Match='"9", "2", "of-another-kind"').answer[0] == 200
    assert table.call("DELETE", path, If_Match="*").answer[0] == 204


def test_a_read_may_want_news_only(table: Table) -> None:
    path = f"/users/{table.made('ada@example.org')}"
    known = table.call("GET", path, If_None_Match='W/"1"')
    assert (known.answer, known.headers["ETag"]) == ((304, None), '"1"')
    assert table.call("GET", path, If_None_Match='"2"').answer[0] == 200
    assert table.call("GET", path, If_None_Match="*").answer[0] == 304


def test_a_request_repeated_with_its_key_is_done_once_and_answered_the_same(table: Table) -> None:
    first = table.call("POST", "/users", ADA, Idempotency_Key="k1")
    again = table.call("POST", "/users", ADA, Idempotency_Key="k1")
    assert again.reply == first.reply
    path = first.headers["Location"]
    changes = [table.call("PATCH", path, {"name": "B"}, Idempotency_Key="p") for _ in range(2)]
    assert [change.answer[1]["version"] for change in changes] == [2, 2]
    refusals = [table.call("POST", "/users", ADA, Idempotency_Key="k2") for _ in range(2)]
    assert [refusal.answer[0] for refusal in refusals] == [409, 409]
    gone = [table.call("DELETE", path, Idempotency_Key="k3").answer[0] for _ in range(2)]
    assert gone == [204, 204]
    assert table.call("POST", "/users", ADA, Idempotency_Key="k2").answer[0] == 409, (
        "it had ended so, and ends so again"
    )


def test_a_key_of_another_request_is_refused(table: Table) -> None:
    path = table.call("POST", "/users", ADA, Idempotency_Key="k").headers["Location"]
    others = [
        table.call("POST", "/users", ADA | {"name": "B"}, Idempotency_Key="k"),
        table.call("PATCH", path, {"name": "B"}, Idempotency_Key="p"),
        table.call("PATCH", path, {"name": "C"}, Idempotency_Key="p"),
        table.call("PATCH", path, {"name": "B"}, Idempotency_Key="p", If_Match='"2"'),
    ]
    assert [other.answer[0] for other in others] == [422, 200, 422, 422]
    assert faults(others[0].answer) == ["Idempotency-Key"]
    assert table.call("GET", path).answer[1]["name"] == "B"


def test_outcomes_are_kept_for_a_time(table: Table) -> None:
    first = table.call("POST", "/users", ADA, Idempotency_Key="k")
    table.call("PATCH", first.headers["Location"], {"name": "B"})
    table.advance(60_001)
    assert table.rows("outcomes") == 1, "only that of the request with a key"
    assert table.call("POST", "/users", ADA, Idempotency_Key="k").reply == first.reply
    table.advance(600_000)
    assert table.rows("outcomes") == 0
    late = table.call("POST", "/users", ADA, Idempotency_Key="k").answer
    assert (late[0], faults(late)) == (409, ["Idempotency-Key"]), "it made a user once: never a second"


def test_no_more_outcomes_are_kept_than_they_may_be(weather: Weather) -> None:
    table = Table(weather, keeping(5))
    path = table.call("POST", "/users", ADA, Idempotency_Key="k").headers["Location"]
    for number in range(20):
        assert table.call("PATCH", path, {"name": str(number)}, Idempotency_Key=f"p{number}").answer[0] == 200
    assert table.rows("outcomes") == 5
    assert table.rows("outcome_places") == 5
    assert table.call("PATCH", path, {"name": "15"}, Idempotency_Key="p15").answer[1]["version"] == 17, "kept"
    assert table.call("PATCH", path, {"name": "14"}, Idempotency_Key="p14").answer[1]["version"] == 22, "done again"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ["#/email", "#/name"]),
        ({"email": 1, "name": None}, ["#/email", "#/name"]),
        (ADA | {"email": "ada"}, ["#/email"]),
        (ADA | {"email": "ada@"}, ["#/email"]),
        (ADA | {"email": "a da@example.org"}, ["#/email"]),
        (ADA | {"email": "ädä@example.org"}, ["#/email"]),
        (ADA | {"email": "a" * 250 + "@b.c"}, []),
        (ADA | {"email": "a" * 251 + "@b.c"}, ["#/email"]),
        (ADA | {"name": "  "}, ["#/name"]),
        (ADA | {"name": "x" * 200}, []),
        (ADA | {"name": "x" * 201}, ["#/name"]),
        (ADA | {"nick/name~": "a"}, ["#/nick~1name~0"]),
        (ADA | {"id": "0" * 32, "version": 7}, ["#/id", "#/version"]),
        (ADA | {"attributes": ["a"]}, ["#/attributes"]),
        (ADA | {"attributes": {"a": 1, "b": None, "": "x", "c": "x" * 257}}, None),
        (ADA | {"attributes": {f"a{number}": "x" for number in range(17)}}, ["#/attributes"]),
        ([], ["#"]),
        (b"{", None),
        (b'{"email": "\xff"}', None),
    ],
)
def test_what_is_no_user_is_refused_with_the_names_of_its_fields(body: Any, expected: list[str] | None) -> None:
    status, problem = Table("calm").call("POST", "/users", body).answer
    if expected is None:
        assert status in {400, 422}
        assert problem["title"]
    else:
        assert (status, [one["pointer"] for one in problem.get("errors", [])]) == (422 if expected else 201, expected)


def test_each_wrong_attribute_is_named() -> None:
    body = ADA | {"attributes": {"a": 1, "b": None, "": "x", "c": "x" * 257, "x" * 65: "y"}}
    answer = Table("calm").call("POST", "/users", body).answer
    named = ["#/attributes/b", "#/attributes/a", "#/attributes/", "#/attributes/c", "#/attributes/" + "x" * 65]
    assert faults(answer) == named
    patched = (
        Table("calm").call("PATCH", f"/users/{'0' * 32}", {"email": None, "attributes": {"a": 1, "b": None}}).answer
    )
    assert (patched[0], faults(patched)) == (422, ["#/email", "#/attributes/a"])


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "about"),
    [
        ("GET", "/users?limit=0", {}, 400, ["limit"]),
        ("GET", "/users?limit=101", {}, 400, ["limit"]),
        ("GET", "/users?limit=²", {}, 400, ["limit"]),
        # Leading zeros of a number that is larger than its first digits say, or has more digits than Python reads.
        ("GET", "/users?limit=0000000011000", {}, 400, ["limit"]),
        ("GET", f"/users?limit=000000001{'9' * 5_000}", {}, 400, ["limit"]),
        ("GET", "/users?cursor=x", {}, 400, ["cursor"]),
        ("GET", f"/users?cursor={DEEP_CURSOR}", {}, 400, ["cursor"]),
        ("GET", "/users?cursor=kgnEAA==", {}, 400, ["cursor"]),
        ("GET", "/users?colour=red", {}, 400, ["colour"]),
        ("GET", f"/users/{'0' * 32}?x=1", {}, 400, ["x"]),
        ("GET", "/users/nobody", {}, 404, []),
        ("POST", "/users", {"Content_Type": "text/plain"}, 415, ["Content-Type"]),
        ("POST", "/users", {"Idempotency_Key": "with space"}, 400, ["Idempotency-Key"]),
        ("POST", "/users", {"Idempotency_Key": "k" * 129}, 400, ["Idempotency-Key"]),
        ("PUT", f"/users/{'0' * 32}", {"If_Match": "one"}, 400, ["If-Match"]),
    ],
)
def test_a_request_that_cannot_be_understood_is_answered_with_its_faults(
    method: str, path: str, headers: dict[str, str], status: int, about: list[str]
) -> None:
    call = Table("calm").call(method, path, None if method == "GET" else ADA, **headers)
    assert call.answer[0] == status
    assert [one.get("header") or one.get("parameter") for one in call.answer[1].get("errors", [])] == about
    assert call.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("limit", [1, 4, 100])
def test_pages_have_every_user_once_in_the_order_of_partition_and_key(limit: int) -> None:
    table = Table("calm")
    ids = [table.made(f"user{number}@example.org") for number in range(13)]
    listed = [user["id"] for user in table.listed(limit)]
    assert sorted(listed) == sorted(ids)
    assert listed == [user["id"] for user in table.listed(7)], "for any size of the pages"
    gone = listed[5]
    first, later = table.call("GET", "/users?limit=5").answer[1], []
    table.call("DELETE", f"/users/{gone}")
    cursor = first["next_cursor"]
    while cursor is not None:
        page = table.call("GET", f"/users?limit=5&cursor={cursor}").answer[1]
        later += [user["id"] for user in page["users"]]
        cursor = page["next_cursor"]
    assert [user["id"] for user in first["users"]] + later == [one for one in listed if one != gone]


def test_what_is_no_command_is_rejected(table: Table) -> None:
    driver = table.drivers[0]
    claim = codec.USER_COMMAND.encode(UserCommand(SCHEMA_VERSION, Claim("0" * 32, 1)))
    released = codec.USER_COMMAND.encode(UserCommand(SCHEMA_VERSION, Released("a@b.c", 1)))
    for key, value in ((None, claim), (b"a", b"{}"), (b"a", claim), (b"a@b.c", released)):
        driver.pipe(topics.USER_COMMANDS, key, value, at_ms=table.now_ms)
    assert [json.loads(output.value or b"{}") for output in driver.outputs(topics.REJECTED)] == [
        json.loads(claim),
        {},
        json.loads(claim),
        json.loads(released),
    ]
