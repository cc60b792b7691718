"""How many logins may fail: a pair of address and account the fewest, and each part counts for all who share it."""

from services.accounts.core.login_throttle import Allowance, allowances


def subjects(address: str | None, email: str) -> list[str]:
    return [one.subject for one in allowances(address, email)]


def test_a_pair_may_fail_the_least() -> None:
    pair, address, account = allowances("192.0.2.1", "ann@example.org")
    assert (pair.failures_max, address.failures_max, account.failures_max) == (5, 30, 60)
    assert [one.seconds for one in (pair, address, account)] == [60.0, 20.0, 20.0]


def test_an_address_counts_for_all_accounts_and_an_account_for_all_addresses() -> None:
    pair, address, account = subjects("192.0.2.1", "ann@example.org")
    other_pair, same_address, other_account = subjects("192.0.2.1", "bob@example.org")
    assert (other_pair != pair, same_address, other_account != account) == (True, address, True)
    other_pair, other_address, same_account = subjects("192.0.2.2", "Ann@Example.org")
    assert (other_pair != pair, other_address != address, same_account) == (True, True, account)


def test_one_household_of_ipv6_is_one_address() -> None:
    assert subjects("2001:db8::1", "a") == subjects("2001:db8::ffff", "a")
    # Of the networks that a home has, each is the same household.
    assert subjects("2001:db8::1", "a") == subjects("2001:db8:0:ff::1", "a")
    assert subjects("2001:db8::1", "a") != subjects("2001:db8:0:100::1", "a")
    assert subjects("::ffff:192.0.2.1", "a") == subjects("192.0.2.1", "a")


def test_at_a_site_that_is_known_the_account_does_not_count_for_all_addresses() -> None:
    known = [one.subject for one in allowances("192.0.2.1", "a", is_known=True)]
    assert known == subjects("192.0.2.1", "a")[:2]


def test_what_is_no_address_is_one_and_no_text_is_kept() -> None:
    assert subjects(None, "a") == subjects("no address", "a")
    assert all(isinstance(one, Allowance) and "secret" not in one.subject for one in allowances("secret", "secret"))
