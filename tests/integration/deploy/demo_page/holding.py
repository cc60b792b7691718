"""The page of a running demo in a real Chromium, clicked through as a person does, beside the truth of its simulated players.

Every figure that is read from the page is counted again from the players' account (`truth.json`), which does not depend on how
beacons are folded. The demo must have compared, and no player may send anything meanwhile. What players of a few seconds cannot
show, such as a month, is compared with generated rows (`tests/integration/page`).
"""

import shlex
from contextlib import closing
from pathlib import Path
from typing import Final

from deploy.demo import accounts, addresses
from loadtest.incident import Incident
from tests.integration.deploy.demo_page import errors, explore, files, single, titles
from tests.integration.deploy.demo_page.told import told
from tests.integration.page.parts.looking import Seen, let_in
from tests.integration.parts.browsing import chromium, undisturbed

#: What is looked at, in this order.
_CHECKS: Final = (
    *(single.now, single.viewer),
    *(explore.tables, explore.startup, explore.exits, explore.versions, explore.titles_by_cdn, explore.score),
    *(titles.one, titles.most_rebuffering, titles.at_a_time),
    *(errors.codes, errors.since_the_incident),
    files.views,
)


def hold(folder: Path, incident: Incident) -> None:
    """Holds the page of the demo in a folder against its players' truth."""
    found = _addresses(folder)
    url = found["PAGE"]
    known = told(folder / "truth.json", incident)
    with (
        chromium() as browser,
        closing(let_in(browser, url, found["POSTGRES"], accounts.OWNER)) as context,
        undisturbed(context, url) as page,
    ):
        seen = Seen(page, url)
        for holds in _CHECKS:
            holds(seen, known)


def _addresses(folder: Path) -> dict[str, str]:
    lines = (folder / addresses.FILE_NAME).read_text().splitlines()
    return dict(shlex.split(line)[1].split("=", 1) for line in lines)
