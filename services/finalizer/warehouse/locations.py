"""Where tables and checkpoints are: a local folder, or an address of an object store such as `s3a://bucket/warehouse`."""

from pathlib import Path
from typing import Annotated

import pydantic


def is_local(location: str) -> bool:
    """Whether the location is a folder of this machine (or one that is mounted here)."""
    return "://" not in location


def _absolute(location: str) -> str:
    return str(Path(location).absolute()) if is_local(location) else location.rstrip("/")


#: An absolute path, or `scheme://...` without a slash at its end.
Location = Annotated[str, pydantic.Field(min_length=1), pydantic.AfterValidator(_absolute)]
