"""The addresses, tokens and paths of a running demo, as shell variables that the documents use."""

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Final

#: Beside the logs in the demo's folder; `. .local/demo/environment` sets the variables.
FILE_NAME: Final = "environment"


def write(folder: Path, variables: Mapping[str, str]) -> Path:
    """Writes the file, which holds tokens: only its owner may read it. Returns its path."""
    file = folder / FILE_NAME
    file.touch(mode=0o600)
    file.write_text("".join(f"export {name}={quote(value)}\n" for name, value in variables.items()))
    return file


def listed(variables: Mapping[str, str], file: Path) -> str:
    """The same for people to read."""
    width = max(len(name) for name in variables)
    lines = [f"  {name:<{width}}  {value}" for name, value in variables.items()]
    return "\n".join([f"Addresses, tokens and paths; for a shell: . {file}", *lines])
