"""docs/settings.md is what the settings classes say, and they say everything of each variable."""

from deploy.settings_doc import _SERVICES, PAGE, Variable, page, variables

ALL = [variable for group in _SERVICES.values() for variable in variables(group)]
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


def _is_without(variable: Variable) -> bool:
    return variable.name in WITHOUT_UNIT or variable.name.endswith("_PORT")
