"""The table of rights in docs/security.md: who writes to a topic is its owner, and every application has what it uses."""

import re
from pathlib import Path

import pytest
from confluent_kafka.admin._resource import ResourcePatternType

from deploy import rights
from deploy.rights import DOCUMENT, Right, binding, documented
from services.processor.catalogue import APPLICATIONS
from shared import topics

APPLICATION_NAMES = tuple(APPLICATIONS)
#: Users that are no application of the processor; `topics` makes topics and neither reads nor writes any.
OTHERS = (
    "collector",
    "finalizer",
    "serving",
    "dashboard",
    "webhooks",
    "notifications",
    "operator",
    "topics",
    "growing",
)


def allowed(user: str, operation: str) -> set[str]:
    return {
        right.name
        for right in documented()
        if (right.user, right.resource, right.operation) == (user, "topic", operation)
    }


def owners(owner: str) -> set[str]:
    """The users behind the words of `Topic.owner`: `collector, processor/traces`, where `processor` is every application."""
    words = owner.split(", ")
    return {name for word in words for name in (APPLICATION_NAMES if word == "processor" else [word.split("/")[-1]])}


def test_every_row_of_the_table_is_read() -> None:
    table = DOCUMENT.read_text().partition("| user | resource |")[2].partition("\n\n")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert len({(right.user, right.resource) for right in documented()}) > len(OTHERS)
    assert sum(len(re.findall("`", row.split("|")[3])) // 2 * len(row.split("|")[4].split(",")) for row in rows) == len(
        documented()
    )
    assert {right.user for right in documented()} == {*APPLICATION_NAMES, *OTHERS}


@pytest.mark.parametrize("topic", topics.ALL, ids=lambda topic: topic.name)
def test_a_topic_is_written_by_its_owners_and_nobody_else(topic: topics.Topic) -> None:
    writers = {user for user in (*APPLICATION_NAMES, *OTHERS) if topic.name in allowed(user, "Write")}
    # Operators give rejected records back to the inputs, and who grows partitions moves their state.
    assert writers - {"operator", "growing"} == owners(topic.owner) - {"operator"}


@pytest.mark.parametrize("name", APPLICATION_NAMES)
def test_an_application_may_use_its_topics_and_no_others(name: str) -> None:
    application = APPLICATIONS[name]({"VIDEO_VIEWS_EXPORT_PROTOBUF": "true"})  # type: ignore[index]
    inputs, outputs = ({topic.name for topic in some} for some in (application.inputs, application.outputs))
    both = {application.changelog.name, topics.PRESENCE.name}
    assert allowed(name, "Read") == inputs | both
    # What has grown is handed on.
    handed_on = inputs if application.growth is not None else set()
    assert allowed(name, "Write") == outputs | both | handed_on
    assert allowed(name, "DescribeConfigs") == inputs | outputs | both
    # Its groups and its producers' ids begin with its name.
    others = [right for right in documented() if right.user == name and right.resource != "topic"]
    assert others == [
        Right(name, "group", f"{name}*", "Read"),
        Right(name, "transactional id", f"{name}.*", "Write"),
    ]


def test_an_operator_may_redrive_each_application_and_do_nothing_else() -> None:
    inputs = {topic.name for make in APPLICATIONS.values() for topic in make({}).inputs}
    assert allowed("operator", "Write") == inputs | {topics.REDRIVEN.name}
    assert allowed("operator", "Read") == {topics.REJECTED.name, topics.REDRIVEN.name}
    assert allowed("operator", "DescribeConfigs") == inputs | {topics.REJECTED.name, topics.REDRIVEN.name}
    others = {right for right in documented() if right.user == "operator" and right.resource != "topic"}
    assert others == {
        right
        for name in APPLICATION_NAMES
        for right in (
            Right("operator", "group", f"{name}.redrive", "Read"),
            Right("operator", "transactional id", f"{name}.redrive", "Write"),
        )
    }


def test_who_grows_partitions_may_write_the_state_of_what_can_grow_and_nothing_else() -> None:
    growable = [one for one in (make({}) for make in APPLICATIONS.values()) if one.growth is not None]
    assert allowed("growing", "Write") == {one.changelog.name for one in growable}
    assert allowed("growing", "Alter") == {topic.name for one in growable for topic in (*one.inputs, one.changelog)}


def test_without_the_document_the_command_says_where_it_should_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(rights, "DOCUMENT", tmp_path / "security.md")
    assert rights.main(["--print"]) == 1
    assert capsys.readouterr().err == (
        f"rights: {tmp_path}/security.md, whose table has them, cannot be read: No such file or directory\n"
    )


def test_a_star_ends_a_prefix_and_alone_is_every_name() -> None:
    prefixed = binding(Right("traces", "group", "traces*", "Read"))
    assert (prefixed.name, prefixed.resource_pattern_type) == ("traces", ResourcePatternType.PREFIXED)
    everything = binding(Right("topics", "topic", "*", "Create"))
    assert (everything.name, everything.resource_pattern_type) == ("*", ResourcePatternType.LITERAL)
