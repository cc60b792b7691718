"""The applications that CONTRIBUTING shows how to write, run as they stand there."""

import re
from pathlib import Path
from typing import Any, Final

from deploy.local.paths import ROOT
from services.processor.engine.application.application import Application
from shared import topics
from shared.topics import Topic

GUIDE: Final = Path(ROOT) / "CONTRIBUTING.md"
#: What each declares in `shared/topics.py`, with its cleanup policy.
DECLARED: Final = {
    "counts": {"COUNTS": "delete", "COUNTS_CHANGELOG": "compact"},
    "reports": {"REPORTS": "delete", "REPORTED": "delete", "REPORTS_CHANGELOG": "compact"},
}


def application(wanted: str) -> Application:
    """The guide's application of this name, beside the topics that it declares."""
    for name, cleanup in DECLARED[wanted].items():
        if not hasattr(topics, name):
            setattr(topics, name, Topic(name=name.lower(), key="k", schema="s", owner="test", cleanup=cleanup))  # type: ignore[arg-type]
    (code,) = re.findall(
        rf"```python\n(# services/processor/applications/{wanted}/.*?)```", GUIDE.read_text(), re.DOTALL
    )
    names: dict[str, Any] = {}
    exec(compile(code, str(GUIDE), "exec"), names)
    found = names["APPLICATION"]
    assert isinstance(found, Application)
    return found
