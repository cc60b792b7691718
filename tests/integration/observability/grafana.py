"""What Grafana does with the statement of a panel before it asks."""

from collections.abc import Iterable


def filled(statement: str, begin: str, end: str, customers: Iterable[str]) -> str:
    """The statement with its macros and variables replaced; the times are ISO 8601."""
    text = statement.replace("$__timeFrom()", f"'{begin}'").replace("$__timeTo()", f"'{end}'")
    text = text.replace("$__timeFilter(at)", f"at BETWEEN '{begin}' AND '{end}'")
    text = text.replace("${customer:sqlstring}", ",".join(f"'{one}'" for one in customers))
    assert "$" not in text, statement
    return text
