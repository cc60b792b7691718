"""Customers: what the file may say, who is found by which key, and that a broken file changes nothing."""

import os
import re
from pathlib import Path
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from services.collector.customers.file import CustomersFile, RulesNow
from services.collector.intake.post import Rules
from services.collector.intake.sender.customers import ANYBODY, Customer, CustomersWrong, Found, parsed_customers

FILE = b"""
[customers.acme]
keys = ["acme-web", "acme-tv"]
revoked_keys = ["acme-old"]
beacons_per_second = 50
origins = ["https://www.acme.example"]
ipv4_bits_kept = 16
privacy_signals = "ignore"

[customers.plain]
"""


def test_a_customer_is_found_by_its_keys() -> None:
    customers = parsed_customers(FILE, toml=True)
    found = customers.find("acme-tv")
    assert isinstance(found, Found)
    assert (found.id, found.terms.beacons_per_second, found.terms.ipv4_bits_kept) == ("acme", 50, 16)
    assert customers.find("plain") == Found("plain", Customer())
    assert [customers.find(key) for key in ("acme", "acme-old")] == ["unknown_customer", "revoked_key"]
    assert customers.terms("acme").privacy_signals == "ignore"
    assert customers.find("plain") == parsed_customers(b'{"customers": {"plain": {}}}', toml=False).find("plain")


@pytest.mark.parametrize(
    "origin",
    ["https://www.acme.example", "http://localhost:8080", "http://[::1]:8080", "capacitor://localhost", "null"],
)
def test_an_origin_is_written_as_browsers_write_it(origin: str) -> None:
    """Any other would match no page, and all that its customer's pages send would be rejected."""
    found = parsed_customers(b"[customers.acme]\norigins = ['%s']" % origin.encode(), toml=True).find("acme")
    assert isinstance(found, Found)
    assert found.terms.origins == {origin}


def test_without_a_file_every_key_is_a_customer() -> None:
    assert ANYBODY.find("who-ever") == Found("who-ever", Customer())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "customers = 3",
        "[customers.'no spaces']\nkeys = []\n[customers.a]\nkeys = ['b c']",
        "[customers.acme]\nkeys = ['x']\n[customers.other]\nkeys = ['x']",
        "[customers.acme]\nkeys = ['x']\nrevoked_keys = ['x']",
        "[customers.acme]\nbeacons_per_second = 0",
        "[customers.acme]\nbeacon_per_second = 1",
        "[customers.acme]\nipv4_bits_kept = 32",
        "[customers.acme]\norigins = ['https://www.acme.example/']",
        "[customers.acme]\norigins = ['www.acme.example']",
        "[customers.acme]\norigins = ['https://WWW.acme.example']",
        "[customers.acme]\norigins = ['*']",
        "[customers.acme\n",
        "[customers.acme]\nbeacons_per_second = " + "9" * 5_000,
        "x = " + "[" * 5_000,
        "\xff",
    ],
)
def test_a_file_that_is_wrong_says_so(text: str) -> None:
    with pytest.raises(CustomersWrong):
        parsed_customers(text.encode("latin-1"), toml=True)


@pytest.mark.thorough
@given(st.binary(max_size=200), st.booleans())
def test_nothing_but_its_own_error_leaves_the_parser(data: bytes, toml: bool) -> None:
    with pytest.raises(CustomersWrong):
        parsed_customers(data, toml=toml)


def test_a_changed_file_is_taken_over_and_a_broken_one_is_not(tmp_path: Path) -> None:
    def count(outcome: str) -> float:
        return REGISTRY.get_sample_value("playhead_collector_customers_reloads_total", {"outcome": outcome}) or 0

    before = [count("ok"), count("failed")]
    path = tmp_path / "customers.toml"
    path.write_bytes(FILE)
    file = CustomersFile(path)
    rules = RulesNow(Rules(customers=file.customers), file)
    unchanged = rules()
    file.reload_when_changed()
    assert rules() is unchanged

    replacement = tmp_path / "new"
    for content in (b"[customers.new]\n", b"[customers.broken\n"):
        replacement.write_bytes(content)
        os.replace(replacement, path)  # noqa: PTH105 - as a mounted volume does it
        file.reload_when_changed()
        assert rules().customers.find("new") == Found("new", Customer())
        assert rules().customers.find("plain") == "unknown_customer"
    path.unlink()
    file.reload_when_changed()
    assert rules().customers.find("new") == Found("new", Customer())
    assert [count("ok") - before[0], count("failed") - before[1]] == [1, 2]


def test_a_file_that_cannot_be_read_for_a_moment_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "customers.toml"
    path.write_bytes(FILE)
    file = CustomersFile(path)
    path.write_bytes(b"[customers.new]\n")
    with monkeypatch.context() as away:
        away.setattr(Path, "open", Mock(side_effect=OSError(5, "Input/output error")))
        file.reload_when_changed()
    assert file.customers.find("new") == "unknown_customer"
    file.reload_when_changed()
    assert file.customers.find("new") == Found("new", Customer())


def test_a_file_that_is_not_there_is_not_started_with(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        CustomersFile(tmp_path / "none.toml")


def test_the_file_that_the_document_shows_is_one() -> None:
    page = (Path(__file__).parents[4] / "docs/collector.md").read_text()
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    customer = parsed_customers(shown.encode(), toml=True).find("acme-web")
    assert isinstance(customer, Found)
    assert (customer.id, customer.terms.ipv4_bits_kept) == ("acme", 24)
