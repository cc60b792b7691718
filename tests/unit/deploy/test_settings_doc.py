"""docs/settings.md is what the settings classes say, and they say everything of each variable."""

import re

from deploy.local.paths import ROOT
from deploy.settings_doc import GROUPS, PAGE, Variable, page, variables

ALL = [variable for group in GROUPS.values() for variable in variables(group)]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
#: Numbers that count nothing.
WITHOUT_UNIT = {"PROCESSOR_REPLICA", "VIDEO_VIEWS_GENERATION"}


def test_the_page_is_what_the_classes_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m deploy.settings_doc"


def test_every_variable_has_a_meaning() -> None:
    assert [variable.name for variable in ALL if not variable.meaning] == []


def test_every_number_has_a_unit_and_both_bounds() -> None:
    numbers = [variable for variable in ALL if variable.kind in {"integer", "number"}]
    assert [one.name for one in numbers if not one.unit and not _is_without(one)] == []
    unbounded = [one.name for one in numbers if "≤" not in one.bounds or not {"≥", ">"} & set(one.bounds)]
    assert unbounded == []


def test_no_variable_stands_twice() -> None:
    names = [variable.name for variable in ALL]
    assert sorted(names) == sorted(set(names))


def test_every_service_listens_on_its_machine_alone_and_in_an_image_on_all_addresses() -> None:
    # The one that is another's, which the service connects to.
    hosts = {
        one.name: one.default for one in ALL if one.name.endswith("_HOST") and one.name != "NOTIFICATIONS_SMTP_HOST"
    }
    assert set(hosts.values()) == {"`127.0.0.1`"}
    in_images = re.findall(r"^(?:ENV)? +(\w+_HOST)=(\S+)", DOCKERFILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert in_images == [(name, "0.0.0.0") for name in hosts]


def _is_without(variable: Variable) -> bool:
    return variable.name in WITHOUT_UNIT or variable.name.endswith("_PORT")
