"""Credentials of services: who holds a token, what is refused as an entry, and what the command prints."""

import base64

import pytest

from services.rim.http.credentials import Credentials, digest_of, entry, main, parse

TOKEN = "a token of sixteen or more"


def test_a_token_is_known_by_its_hash_and_as_bearer_alone() -> None:
    known = Credentials(parse(entry("dashboard", ["lookups", "objects"], TOKEN)))
    holder = known.holder(f"Bearer {TOKEN}")
    assert holder is not None
    assert (holder.name, holder.scopes, holder.customers) == ("dashboard", {"lookups", "objects"}, None)
    assert known.holder(f"Bearer {digest_of(TOKEN).hex()}") is None
    for text in ("", TOKEN, f"Token {TOKEN}", "Basic " + base64.b64encode(f"dashboard:{TOKEN}".encode()).decode()):
        assert known.holder(text) is None


def test_a_token_is_replaced_with_an_overlap() -> None:
    known = Credentials(parse(f"{entry('query', ['lookups'], TOKEN)}\n{entry('query', ['lookups'], 'the next one')}"))
    assert [known.holder(f"Bearer {token}").name for token in (TOKEN, "the next one")] == ["query"] * 2  # type: ignore[union-attr]


def test_an_entry_of_customers_reads_those_alone() -> None:
    (one,) = parse(entry("reports", ["lookups"], TOKEN, ["acme", "acme-test"]))
    assert one.reads(["acme"])
    assert not one.reads(["acme", "other"])
    assert not one.reads(["acme-"])


@pytest.mark.parametrize(
    "text",
    [
        TOKEN,
        f"dashboard={digest_of(TOKEN).hex()}",
        f"dashboard=everything={digest_of(TOKEN).hex()}",
        f"dashboard=lookups={digest_of(TOKEN).hex()[:-1]}",
        f"dashboard=lookups={digest_of(TOKEN).hex()}=",
        f"Dashboard=lookups={digest_of(TOKEN).hex()}",
        # What belongs to no customer.
        f"reports=lookups,operators={digest_of(TOKEN).hex()}=acme",
        f"reports=read={digest_of(TOKEN).hex()}=acme",
    ],
)
def test_what_is_no_entry_is_refused_and_not_quoted(text: str) -> None:
    with pytest.raises(ValueError, match=r"^entry 1") as refused:
        parse(text)
    assert digest_of(TOKEN).hex()[:8] not in str(refused.value)
    assert TOKEN[:8] not in str(refused.value)


def test_the_command_makes_a_token_and_its_entry(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reports", "lookups,objects", "acme,beta"]) == 0
    token, made = capsys.readouterr().out.split()
    assert made == entry("reports", ["lookups", "objects"], token, ["acme", "beta"])
    assert len(token) >= 43
    assert main(["reports", "everything"]) == 2
    assert main([]) == 2
    assert token not in capsys.readouterr().err
