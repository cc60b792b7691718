"""Grants each service's Kafka user the rights in docs/security.md: `python -m deploy.rights`; `--print` only prints them.

Run it as a user who may alter the cluster. Existing rights stay unchanged; none is removed.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from services.rim.kafka.connection import client_config
from services.rim.process.secrets import with_secrets
from shared.settings import Settings, SettingsError

DOCUMENT: Final = Path(__file__).parents[1] / "docs" / "security.md"
ANSWER_SECONDS_MAX: Final = 30.0
_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS: Final = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Create": AclOperation.CREATE,
    "Describe": AclOperation.DESCRIBE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
    "Alter": AclOperation.ALTER,
    "AlterConfigs": AclOperation.ALTER_CONFIGS,
}
_ROW: Final = re.compile(
    rf"^\| `(?P<user>\w+)` \| (?P<resource>{'|'.join(_RESOURCES)}) \| (?P<names>[^|]+) \| (?P<operations>[\w, ]+) \|$",
    re.MULTILINE,
)


class Right(NamedTuple):
    """One thing that one user may do with one resource, in the document's words."""

    user: str
    resource: str
    #: With `*` behind it a prefix; `*` alone is every name.
    name: str
    operation: str


class RightsNotGranted(RuntimeError):
    """The broker refused, or did not answer; the text says which right."""


class RightsUnknown(RuntimeError):
    """The document that has the rights is not there; the text says where it should be."""


def documented() -> list[Right]:
    """The rows of the document's table, a right each. Raises `RightsUnknown`."""
    try:
        text = DOCUMENT.read_text(encoding="utf-8")
    except OSError as error:
        raise RightsUnknown(f"{DOCUMENT}, whose table has them, cannot be read: {error.strerror}") from error
    rows = _ROW.finditer(text)
    return [
        Right(row["user"], row["resource"], name, operation)
        for row in rows
        for name in re.findall("`(.*?)`", row["names"])
        for operation in row["operations"].split(", ")
    ]


def binding(right: Right) -> AclBinding:
    """The right as Kafka keeps it, for connections from everywhere."""
    name, pattern = right.name, ResourcePatternType.LITERAL
    if name.endswith("*") and name != "*":
        name, pattern = name.removesuffix("*"), ResourcePatternType.PREFIXED
    principal, operation = f"User:{right.user}", _OPERATIONS[right.operation]
    return AclBinding(_RESOURCES[right.resource], name, pattern, principal, "*", operation, AclPermissionType.ALLOW)


def grant(settings: Settings, rights: Iterable[Right]) -> None:
    """Grants rights. Raises `RightsNotGranted`."""
    admin = AdminClient(client_config(settings, "deploy-rights"))
    wanted = {binding(right): right for right in rights}
    for made, answer in admin.create_acls(list(wanted), request_timeout=ANSWER_SECONDS_MAX).items():
        try:
            answer.result()
        except KafkaException as error:
            raise RightsNotGranted(f"{' '.join(wanted[made])}: {error.args[0].str()}") from error


def main(arguments: Sequence[str]) -> int:
    """The command; 0 when every right is granted."""
    parser = argparse.ArgumentParser(prog="python -m deploy.rights", description=__doc__)
    parser.add_argument("--print", action="store_true", help="grant nothing, print the rights")
    only_print = parser.parse_args(arguments).print
    try:
        rights = documented()
        if not only_print:
            grant(Settings.load(with_secrets(Settings, os.environ)), rights)
    except (RightsNotGranted, RightsUnknown, SettingsError) as problem:
        print(f"rights: {problem}", file=sys.stderr)
        return 1
    for right in rights:
        print(f"User:{right.user} may {right.operation} {right.resource} {right.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
