"""The styles of the screens' document as one file."""

import re

import pytest

from services.dashboard.page.files import Files
from services.dashboard.page.routes import STATIC
from services.dashboard.page.styles import PATH, joined

DOCUMENT = """
    <link rel="icon" href="/static/icon.svg">
    <link rel="stylesheet" href="/static/styles/one.css">
    <link rel="stylesheet" href="/static/styles/two.css">
    <script></script>
"""
FILES = {"styles/one.css": "a { color: red }", "styles/two.css": "a { color: blue }"}


def test_one_link_stands_in_place_of_all_and_its_styles_are_in_their_order() -> None:
    document, styles = joined(DOCUMENT, FILES)

    assert (
        document
        == f"""
    <link rel="icon" href="/static/icon.svg">
    <link rel="stylesheet" href="/static/{PATH}">
    <script></script>
"""
    )
    assert styles.index("red") < styles.index("blue")


def test_a_link_to_what_is_no_file_is_an_error() -> None:
    with pytest.raises(KeyError):
        joined(DOCUMENT, {"styles/one.css": ""})


def test_all_styles_of_the_page_are_in_the_one_file() -> None:
    texts = Files(STATIC).texts((".css", ".html"))
    document, styles = joined(texts["index.html"], texts)

    assert re.findall(r'rel="stylesheet" href="([^"]+)"', document) == [f"/static/{PATH}"]
    for path in re.findall(r'rel="stylesheet" href="/static/([^"]+)"', texts["index.html"]):
        assert texts[path] in styles
