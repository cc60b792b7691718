"""What clients send is no formula in a spreadsheet."""

import pytest

from services.rim.http.cells import plain


@pytest.mark.parametrize("text", ["=HYPERLINK(1)", "+1", "-1+1", "@SUM(A1)", "\t=1", "\r=1"])
def test_a_formula_is_a_text(text: str) -> None:
    assert plain(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a", "1", " =1", "Cup final", "é=1"])
def test_any_other_text_stays_as_it_is(text: str) -> None:
    assert plain(text) == text
