"""Stories of addresses: claimed, confirmed, released between partitions, in any order, with steps lost and steps taken twice."""

import random

import pytest

from services.processor.engine.driver import Weather
from shared import codec
from shared.schemas.user_command import SCHEMA_VERSION, Claim, Claimed, Confirm, Release, Released, UserCommand
from tests.unit.processor.applications.users.table import Call, Table, go, keeping


def kinds(table: Table) -> list[str]:
    """What is under way."""
    return [type(codec.USER_COMMAND.decode(value).what).__name__ for sent in table.under_way for _, value in sent]


def stepped(table: Table, *calls: Call) -> None:
    """The requests take what steps they can; nothing that is under way arrives."""
    while go(*calls):
        pass


def test_a_user_is_seen_once_its_address_is_granted_and_the_answer_comes_then(table: Table) -> None:
    call = table.start("POST", "/users", {"email": "a@example.org", "name": "A"})
    stepped(table, call)
    assert (kinds(table), table.rows("users"), table.rows("changes"), call.reply) == (["Claim"], 0, 1, None)
    table.deliver()
    stepped(table, call)
    assert (kinds(table), table.rows("users"), table.rows("email_claims"), call.reply) == (["Claimed"], 0, 1, None)
    by_address = table.start("GET", "/users?email=a@example.org")
    stepped(table, by_address)
    assert by_address.reply is None, "nobody knows yet whose it is"
    table.deliver()
    stepped(table, call, by_address)
    assert (kinds(table), table.rows("users"), call.answer[0]) == (["Confirm"], 1, 201)
    assert by_address.reply is None
    table.deliver()
    stepped(table, by_address)
    assert by_address.answer[1]["users"] == [call.answer[1]]
    assert table.rows("changes") == 0


def test_a_deletion_is_answered_once_the_address_is_free(table: Table) -> None:
    user_id = table.made("a@example.org")
    gone = table.start("DELETE", f"/users/{user_id}")
    stepped(table, gone)
    assert (kinds(table), table.rows("users"), gone.reply) == (["Release"], 0, None)
    by_address = table.start("GET", "/users?email=a@example.org")
    for _ in range(9):
        by_address.go()
    assert by_address.reply is None, "it is being given up"
    table.deliver()
    stepped(table, by_address)
    assert by_address.answer[1]["users"] == []
    assert (kinds(table), gone.reply) == (["Released"], None)
    table.deliver()
    stepped(table, gone)
    assert gone.answer == (204, None)


def test_an_address_that_is_given_up_for_another_has_no_answer_until_it_is_free(table: Table) -> None:
    user_id = table.made("a@example.org")
    moves = table.start("PATCH", f"/users/{user_id}", {"email": "b@example.org"})
    while kinds(table) != ["Release"]:
        stepped(table, moves)
        table.deliver()
        # The confirmation of the new address comes before the release of the former one.
        if kinds(table) == ["Confirm", "Release"]:
            table.deliver()
    by_address = table.start("GET", "/users?email=a@example.org")
    for _ in range(9):
        by_address.go()
    assert by_address.reply is None, "it has another address already"
    stray = UserCommand(SCHEMA_VERSION, Released("a@example.org", 999))
    table.submit(user_id.encode(), codec.USER_COMMAND.encode(stray))
    stepped(table, moves)
    assert moves.reply is None, "that was not of this claim"
    table.settle(moves, by_address)
    assert (moves.answer[0], by_address.answer[1]["users"]) == (200, [])


def test_of_two_who_want_an_address_one_has_it(table: Table) -> None:
    calls = [table.start("POST", "/users", {"email": "a@example.org", "name": name}) for name in "AB"]
    table.settle(*calls)
    assert sorted(call.answer[0] for call in calls) == [201, 409]
    assert (len(table.listed()), table.rows("email_claims"), table.rows("changes")) == (1, 1, 0)


def test_writes_of_a_user_wait_for_its_address_and_keep_their_order(table: Table) -> None:
    user_id = table.made("a@example.org")
    path = f"/users/{user_id}"
    first = table.start("PATCH", path, {"email": "b@example.org"})
    stepped(table, first)
    later = [
        table.start("PATCH", path, {"name": "B"}, Idempotency_Key="k"),
        table.start("PATCH", path, {"name": "B"}, Idempotency_Key="k"),
        table.start("PATCH", path, {"email": "c@example.org"}, If_Match='"3"'),
        table.start("PATCH", path, {"name": "D"}, If_Match='"3"'),
        table.start("DELETE", path),
        table.start("DELETE", path),
    ]
    stepped(table, *later)
    assert table.call("GET", path).answer[1]["version"] == 1, "reads do not wait"
    table.settle(first, *later)
    assert [call.answer[0] for call in (first, *later)] == [200, 200, 200, 200, 412, 204, 404]
    assert [call.answer[1]["version"] for call in (first, *later[:3])] == [2, 3, 3, 4]
    assert (table.rows("users"), table.rows("email_claims"), table.rows("changes")) == (0, 0, 0)


def test_more_writes_than_may_wait_get_a_retry_after(table: Table) -> None:
    path = f"/users/{table.made('a@example.org')}"
    first = table.start("PATCH", path, {"email": "b@example.org"})
    stepped(table, first)
    later = [table.start("PATCH", path, {"name": str(number)}, Idempotency_Key=f"k{number}") for number in range(17)]
    stepped(table, *later)
    assert [call.answer[0] for call in later if call.reply is not None] == [503]
    assert later[16].headers["Retry-After"] == "1"
    table.settle(first, *later)
    assert [call.answer[0] for call in later] == [200] * 16 + [503]
    again = table.start("PATCH", path, {"name": "16"}, Idempotency_Key="k16")
    stepped(table, again)
    once_more = table.call("PATCH", path, {"name": "16"}, Idempotency_Key="k16")
    assert once_more.answer[0] == 200, "that it was refused is not held against it"
    assert table.call("GET", path).answer[1]["version"] == 19


def test_a_retry_of_a_write_that_was_refused_for_now_hears_its_final_outcome(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/users/{table.made('a@example.org')}"
    first = table.start("PATCH", path, {"email": "b@example.org"})
    stepped(table, first)
    later = [table.start("PATCH", path, {"name": str(number)}, Idempotency_Key=f"k{number}") for number in range(17)]
    stepped(table, *later)
    assert later[16].answer[0] == 503
    table.settle(first, *later)
    held: list[tuple[bytes, bytes]] = []
    with monkeypatch.context() as slow:
        slow.setattr(table, "submit", lambda key, value: held.append((key, value)))
        retry = table.start("PATCH", path, {"name": "16"}, Idempotency_Key="k16")
        assert retry.go(), "its command is stored"
        assert not retry.go(), "the command is not folded yet: the refusal of the former one is no answer"
    for key, value in held:
        table.submit(key, value)
    table.settle(retry)
    assert retry.answer[0] == 200
    assert table.call("GET", path).answer[1]["name"] == "16"


def test_a_step_that_was_lost_is_taken_again(table: Table) -> None:
    """As when somebody's mistake had it rejected: the engine loses none."""
    made = table.start("POST", "/users", {"email": "a@example.org", "name": "A"})
    for _ in ("Claim", "Claimed"):
        while not made.go() and not any(table.under_way):
            pass
        table.under_way = [type(sent)() for sent in table.under_way]
        table.advance(30_001)
    table.settle(made)
    gone = table.start("DELETE", made.headers["Location"])
    for _ in ("Release", "Released"):
        stepped(table, gone)
        table.under_way = [type(sent)() for sent in table.under_way]
        table.advance(30_001)
    table.settle(gone)
    assert (made.answer[0], gone.answer[0]) == (201, 204)
    assert (table.rows("email_claims"), table.rows("changes")) == (0, 0)


def test_a_step_that_is_taken_twice_changes_nothing(table: Table) -> None:
    made = table.start("POST", "/users", {"email": "a@example.org", "name": "A"})
    stepped(table, made)
    for _ in range(3):
        table.under_way = [type(sent)([*sent, *sent]) for sent in table.under_way]
        table.deliver()
        stepped(table, made)
    table.settle(made)
    assert (made.answer[0], table.rows("users"), table.rows("email_claims")) == (201, 1, 1)
    assert table.call("GET", "/users?email=a@example.org").answer[1]["users"] == [made.answer[1]]
    table.call("DELETE", made.headers["Location"])
    assert table.rows("email_claims") == 0


def test_a_grant_that_nobody_waits_for_is_given_back(table: Table) -> None:
    """A claim that was sent twice: refused first, and granted once the address had become free."""
    holder, loser = table.made("a@example.org"), table.made("b@example.org")
    wants = table.start("PATCH", f"/users/{loser}", {"email": "a@example.org"})
    stepped(table, wants)
    table.deliver()
    # The refusal is under way, slowly; the claim is made again meanwhile, and the holder goes.
    table.advance(30_001)
    refusals = {
        number: sent.popleft() for number, sent in enumerate(table.under_way) if sent and b"claimed" in sent[0][1]
    }
    assert len(refusals) == 1
    again = [sent.popleft() for sent in table.under_way if sent]
    assert len(again) == 1
    table.call("DELETE", f"/users/{holder}")
    table.submit(*again[0])
    for refusal in refusals.values():
        table.submit(*refusal)
    table.settle(wants)
    assert wants.answer[0] == 409
    assert table.rows("email_claims") == 1, "only that of the address it has"
    table.made("a@example.org")


def test_what_comes_late_or_for_others_changes_nothing(table: Table) -> None:
    user_id = table.made("a@example.org")
    strays = [
        (user_id.encode(), Claimed("a@example.org", 999, is_granted=False)),
        (user_id.encode(), Released("a@example.org", 0)),
        (b"a@example.org", Confirm("0" * 32, 0)),
        (b"z@example.org", Confirm(user_id, 5)),
    ]
    for key, what in strays:
        table.submit(key, codec.USER_COMMAND.encode(UserCommand(SCHEMA_VERSION, what)))
    table.settle()
    assert (table.rows("users"), table.rows("email_claims"), table.rows("changes")) == (1, 1, 0)
    assert len(table.call("GET", "/users?email=a@example.org").answer[1]["users"]) == 1


def test_a_claim_of_the_same_user_under_a_newer_number_is_granted(table: Table) -> None:
    user_id = table.made("a@example.org")
    table.submit(b"a@example.org", codec.USER_COMMAND.encode(UserCommand(SCHEMA_VERSION, Claim(user_id, 1_000))))
    assert b'"is_granted":true' in next(sent for sent in table.under_way if sent)[0][1]
    # What belongs to the former claim does not touch this one.
    table.submit(b"a@example.org", codec.USER_COMMAND.encode(UserCommand(SCHEMA_VERSION, Release(user_id, 0))))
    assert table.rows("email_claims") == 1


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(8))
def test_in_any_order_of_steps_addresses_have_one_user_and_users_their_addresses(weather: Weather, seed: int) -> None:
    random_ = random.Random(seed)
    table = Table(weather, keeping(10_000))
    emails = [f"{letter}@example.org" for letter in "abcd"]
    ids = [table.made(f"first{number}@example.org") for number in range(3)]
    calls: list[Call] = []
    for _ in range(120):
        action = random_.random()
        if action < 0.25:
            calls.append(table.start("POST", "/users", {"email": random_.choice(emails), "name": "new"}))
        elif action < 0.5:
            body = {"email": random_.choice(emails)}
            calls.append(table.start("PATCH", f"/users/{random_.choice(ids)}", body))
        elif action < 0.6:
            calls.append(table.start("DELETE", f"/users/{random_.choice(ids)}"))
        elif action < 0.7:
            table.advance(random_.choice([1, 30_001]))
        else:
            table.deliver(random_)
        for call in calls:
            if call.reply is None and random_.random() < 0.5 and call.go() and call.reply is not None:
                ids += [call.answer[1]["id"]] if call.answer[0] == 201 else []
        taken = [row.email for row in map(_parsed, table.published().values()) if row is not None]
        assert len(taken) == len(set(taken)), "at no time have two users one address"
    while go(*calls) or table.deliver(random_):
        pass
    assert all(call.reply is not None for call in calls)
    assert {call.answer[0] for call in calls} <= {200, 201, 204, 404, 409, 503}
    users = table.listed()
    assert table.rows("changes") == 0
    assert table.rows("email_claims") == len(users)
    for user in users:
        assert table.call("GET", f"/users?email={user['email']}").answer[1]["users"] == [user]


def _parsed(row: object) -> "codec.user.User | None":
    return None if row is None else codec.user.User(**row)  # type: ignore[arg-type]
