"""The styles of the screens' document as one file: each file of a first load is a request that others wait for."""

import re
from collections.abc import Mapping
from typing import Final

PATH: Final = "styles/screens.css"
_LINK: Final = re.compile(r'<link rel="stylesheet" href="/static/([^"]+)">\n\s*')


def joined(document: str, texts: Mapping[str, str]) -> tuple[str, str]:
    """`document` with one link, to `PATH`, in place of those to its styles, and these styles in their order.

    `texts` are the files by their path. Raises `KeyError` for one that is no file.
    """
    links = list(_LINK.finditer(document))
    styles = "\n".join(texts[link[1]] for link in links)
    link = f'<link rel="stylesheet" href="/static/{PATH}">\n    '
    return document[: links[0].start()] + link + _LINK.sub("", document[links[0].start() :]), styles
