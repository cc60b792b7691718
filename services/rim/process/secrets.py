"""Secrets from files: a password that is mounted as a file needs no variable that `docker inspect` would show."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from shared.settings import Settings, SettingsError

SECRET_BYTES_MAX: Final = 64 * 1024
_SUFFIX: Final = "_FILE"


def with_secrets(kind: type[Settings], environ: Mapping[str, str]) -> dict[str, str]:
    """`environ`, with the contents of the files that `<variable>_FILE` names for those variables of `kind` that are secrets.

    A newline at a file's end is no part of the secret. Raises `SettingsError`, which never quotes a file.
    """
    known, problems = dict(environ), []
    for variable in kind.secret_variables():
        path = known.pop(variable + _SUFFIX, None)
        if path is None:
            continue
        if variable in known:
            problems.append(f"{variable} and {variable}{_SUFFIX}: only one of them can be set")
            continue
        try:
            known[variable] = _read(Path(path))
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else "no UTF-8 text of at most 64 KiB"
            problems.append(f"{variable}{_SUFFIX}={path!r}: {why}")
    if problems:
        raise SettingsError("; ".join(problems))
    return known


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(SECRET_BYTES_MAX + 1)
    if len(data) > SECRET_BYTES_MAX:
        raise ValueError
    return data.decode().removesuffix("\n").removesuffix("\r")
