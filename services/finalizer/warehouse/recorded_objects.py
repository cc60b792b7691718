"""Deletes objects of recordings. The processor stores them as `<customer>/<session>/<payload>`, in a folder or in S3."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url
from obstore.store import ObjectStore as Client

from services.finalizer.progress import step

_DELETED_AT_ONCE: Final = 1_000


class ObjectsFailed(RuntimeError):
    """The store did not list or delete objects; a later try may succeed."""


def delete_objects(where: str, prefix: str) -> int:
    """Deletes all objects under a prefix, such as `acme/session-1`; returns how many. Raises `ObjectsFailed`."""
    deleted = 0
    try:
        client = _client(where)
        for found in obstore.list(client, prefix=prefix, chunk_size=_DELETED_AT_ONCE):
            step()
            obstore.delete(client, [one["path"] for one in found])
            deleted += len(found)
        if "://" not in where:
            _delete_folders(Path(where) / prefix)
    except FileNotFoundError:
        return deleted
    except (BaseError, ValueError, OSError) as error:
        raise ObjectsFailed(f"objects under {prefix} were not deleted: {error}") from error
    return deleted


def delete_named(where: str, names: Sequence[str]) -> None:
    """Deletes objects by their names; one that is not there is as good as deleted. Raises `ObjectsFailed`."""
    client = _client(where)
    for begin in range(0, len(names), _DELETED_AT_ONCE):
        some = names[begin : begin + _DELETED_AT_ONCE]
        step()
        try:
            _delete_some(client, some)
        except (BaseError, ValueError, OSError) as error:
            raise ObjectsFailed(f"of {len(some)} objects from {some[0]} on not all were deleted: {error}") from error


def _delete_some(client: Client, names: Sequence[str]) -> None:
    try:
        obstore.delete(client, names)
    except FileNotFoundError:
        # An earlier try was cut off: some are gone, and this one may have left others.
        for name in names:
            with suppress(FileNotFoundError):
                obstore.delete(client, name)


def _client(where: str) -> Client:
    return from_url(where) if "://" in where else LocalStore(Path(where).absolute(), mkdir=True)


def _delete_folders(folder: Path) -> None:
    """Empty ones: their names are sessions. Uploads that were never finished are files with `#` in their names."""
    if not folder.is_dir():
        return
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        elif "#" in path.name:
            path.unlink()
    folder.rmdir()
