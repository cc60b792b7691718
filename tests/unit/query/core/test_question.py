"""What is asked becomes a question, or a problem that names the parameter."""

from typing import Any

import pytest

from services.accounts.core.customer_scope import CustomerScope
from services.query.core.customers import EVERY_CUSTOMER, Customers
from services.query.core.problems import Wrong
from services.query.core.question import AskedBreakdown, AskedSeries, Question, parsed, understood
from services.query.scope import Caller, UnknownCustomer

NOW_MS = 1_774_569_600_000 + 30 * 60_000
HOUR_MS = 3_600_000


def ask(kind: Any = AskedBreakdown, *, caller: Caller | None = None, **given: str) -> Question:
    pairs = [(name.rstrip("_"), value) for name, value in given.items()]
    return understood(parsed(kind, pairs), (caller or Caller("all")).admit, NOW_MS)


def test_a_question_without_a_range_is_of_the_last_day_up_to_the_end_of_this_hour() -> None:
    question = ask(by="cdn")

    assert question.range.to_ms == NOW_MS // HOUR_MS * HOUR_MS + HOUR_MS
    assert question.range.to_ms - question.range.from_ms == 24 * HOUR_MS
    assert [metric.name for metric in question.metrics] == ["views"]


def test_times_are_of_the_zone_unless_they_say_otherwise() -> None:
    question = ask(by="cdn", tz="Europe/Berlin", from_="2026-03-29", to="2026-03-30T00:00:00+00:00")

    # The clocks change on that day: at midnight they are still one hour ahead.
    assert question.range.from_ms == 1_774_738_800_000
    assert question.range.to_ms == 1_774_828_800_000


@pytest.mark.parametrize(
    ("given", "parameter"),
    [
        ({}, None),
        ({"by": "cdn,country,os"}, "by"),
        ({"by": "cdn,"}, "by"),
        ({"by": "cdn;"}, "by"),
        ({"by": "cdn", "metrics": "views,sum(1)"}, "metrics"),
        ({"by": "cdn", "metrics": ",".join(["views"] * 1_000)}, "metrics"),
        ({"by": "cdn", "order_by": "random()"}, "order_by"),
        ({"by": "cdn", "order": "; DROP"}, "order"),
        ({"by": "cdn", "limit": "0"}, "limit"),
        ({"by": "cdn", "limit": "1001"}, "limit"),
        ({"by": "cdn", "limit": "ten"}, "limit"),
        ({"by": "cdn", "views_min": "-1"}, "views_min"),
        ({"by": "cdn", "views_min": "1" + "0" * 50}, "views_min"),
        ({"by": "cdn", "tz": "../../etc/passwd"}, "tz"),
        ({"by": "cdn", "tz": "Mars/Olympus"}, "tz"),
        # Files beside those of time zones.
        *(({"by": "cdn", "tz": name}, "tz") for name in ("Factory", "localtime", "posixrules", "right/Europe/Berlin")),
        ({"by": "cdn", "from": "yesterday"}, "from"),
        ({"by": "cdn", "from": "1970-01-01"}, "from"),
        ({"by": "cdn", "from": "2026-03-30", "to": "2026-03-29"}, "from"),
        ({"by": "cdn", "to": "9" * 400}, "to"),
        ({"by": "cdn", "to": "9999-12-31"}, "to"),
        ({"by": "cdn", "from": "-1"}, "from"),
        ({"by": "cdn", "compare": "never"}, "compare"),
        ({"by": "cdn", "customer": "acme' OR true"}, "customer"),
        ({"by": "cdn", "nothing": "1"}, None),
    ],
)
def test_what_cannot_be_meant_is_refused_with_the_parameter(given: dict[str, str], parameter: str | None) -> None:
    with pytest.raises(Wrong) as caught:
        understood(parsed(AskedBreakdown, list(given.items())), Caller("all").admit, NOW_MS)

    assert caught.value.faults[0].parameter == parameter
    assert caught.value.problem().status == 400


def test_a_parameter_counts_once_but_for_filters_which_must_all_hold() -> None:
    with pytest.raises(Wrong, match="given twice"):
        parsed(AskedBreakdown, [("by", "cdn"), ("by", "os")])
    both = [("filter", '{"dimension":"cdn","in":["a"]}'), ("filter", '{"dimension":"os","in":["b"]}')]

    question = understood(parsed(AskedBreakdown, [("by", "cdn"), *both]), Caller("all").admit, NOW_MS)

    assert question.filter is not None
    assert [part.dimension for part in question.filter.all_of or ()] == ["cdn", "os"]


def test_a_series_has_no_more_points_than_one_may() -> None:
    with pytest.raises(Wrong, match="at most 2000 points") as caught:
        ask(AskedSeries, bucket="minute", from_="2026-01-01", to="2026-02-01")

    assert caught.value.faults[0].parameter == "bucket"
    assert ask(AskedSeries, from_="2026-01-01", to="2026-02-01").buckets is not None


def test_a_series_has_no_more_figures_than_one_may() -> None:
    def month(limit: str) -> Question:
        return ask(
            AskedSeries,
            bucket="hour",
            from_="2026-01-01",
            to="2026-02-01",
            by="cdn",
            limit=limit,
            metrics="views,viewers,rebuffer_fraction",
        )

    with pytest.raises(Wrong, match="at most 100000 figures") as caught:
        month("50")

    assert caught.value.faults[0].parameter == "limit"
    assert month("10").limit == 10


def test_a_caller_sees_its_own_customers_and_no_other_exists() -> None:
    caller = Caller("token", CustomerScope(own=frozenset({"acme", "beta"})))

    assert ask(by="cdn", caller=caller).customers == Customers(("acme", "beta"))
    assert ask(by="cdn", caller=caller, customer="acme").customers == Customers(("acme",))
    for customer in ("other", "acme,other"):
        with pytest.raises(UnknownCustomer):
            ask(by="cdn", caller=caller, customer=customer)
    assert ask(by="cdn").customers == EVERY_CUSTOMER


def test_whoever_owns_the_rest_sees_all_but_what_others_own() -> None:
    caller = Caller("owner", CustomerScope(all_but=frozenset({"globex"})))

    assert ask(by="cdn", caller=caller).customers == Customers(but=("globex",))
    assert ask(by="cdn", caller=caller, customer="acme").customers == Customers(("acme",))
    with pytest.raises(UnknownCustomer):
        ask(by="cdn", caller=caller, customer="globex")
