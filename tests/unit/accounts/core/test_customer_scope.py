"""Whose data somebody may see: some customers, or all but those of others; a token sees no more than its owner."""

from services.accounts.core.customer_scope import EVERYTHING, CustomerScope

OWN = CustomerScope(own=frozenset({"acme", "north"}))
REST = CustomerScope(all_but=frozenset({"acme"}))


def test_a_scope_has_its_own_customers_alone() -> None:
    assert [OWN.has(one) for one in ("acme", "north", "other")] == [True, True, False]
    assert not OWN.is_everything


def test_who_runs_the_installation_has_all_that_nobody_else_owns() -> None:
    assert [REST.has(one) for one in ("acme", "north", "new")] == [False, True, True]
    assert not REST.is_everything
    assert EVERYTHING.is_everything


def test_a_restriction_never_adds_a_customer() -> None:
    wanted = ("acme", "other")
    assert OWN.restricted_to(wanted) == CustomerScope(own=frozenset({"acme"}), is_whole=False)
    assert REST.restricted_to(wanted) == CustomerScope(own=frozenset({"other"}), is_whole=False)
    assert EVERYTHING.restricted_to(wanted) == CustomerScope(own=frozenset(wanted), is_whole=False)
