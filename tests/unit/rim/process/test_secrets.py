"""Secrets from files, and what no message ever says of them."""

from pathlib import Path
from typing import ClassVar

import pydantic
import pytest

from services.rim.process.secrets import with_secrets
from shared.settings import Settings, SettingsError


class Example(Settings):
    PREFIX: ClassVar[str] = "EXAMPLE_"

    token: pydantic.SecretStr | None = None
    #: A field whose name ends as the variables of files do.
    customers: str = ""
    customers_file: str = ""


def loaded(environ: dict[str, str]) -> Example:
    return Example.load(with_secrets(Example, environ))


def test_a_secret_may_stand_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\r\n")
    (tmp_path / "password").write_text(" two lines\nand spaces ")
    settings = loaded(
        {
            "EXAMPLE_TOKEN_FILE": str(tmp_path / "token"),
            "EXAMPLE_CUSTOMERS_FILE": "customers.toml",
            "PLAYHEAD_KAFKA_SECURITY_PROTOCOL": "sasl_ssl",
            "PLAYHEAD_KAFKA_USERNAME": "collector",
            "PLAYHEAD_KAFKA_PASSWORD_FILE": str(tmp_path / "password"),
        }
    )
    assert settings.token is not None
    assert settings.kafka_password is not None
    assert settings.token.get_secret_value() == "s3cret"
    assert settings.kafka_password.get_secret_value() == " two lines\nand spaces "
    assert settings.customers_file == "customers.toml"
    assert "s3cret" not in repr(settings)


@pytest.mark.parametrize(
    ("contents", "why"), [(None, "No such file"), (b"\xff", "no UTF-8 text"), (b"x" * 70_000, "at most 64 KiB")]
)
def test_a_file_that_holds_no_secret_is_named_and_not_quoted(tmp_path: Path, contents: bytes | None, why: str) -> None:
    if contents is not None:
        (tmp_path / "token").write_bytes(contents)
    with pytest.raises(SettingsError, match=f"EXAMPLE_TOKEN_FILE='.*token': .*{why}") as refused:
        loaded({"EXAMPLE_TOKEN_FILE": str(tmp_path / "token")})
    assert "xxx" not in str(refused.value)


def test_a_secret_has_one_home(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("a")
    with pytest.raises(SettingsError, match="EXAMPLE_TOKEN and EXAMPLE_TOKEN_FILE: only one"):
        loaded({"EXAMPLE_TOKEN": "b", "EXAMPLE_TOKEN_FILE": str(tmp_path / "token")})
