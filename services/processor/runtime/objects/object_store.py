"""The object store: a folder on this machine, or S3 and compatible stores. Puts are atomic: no reader sees a part of an object."""

import os
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import obstore
from obstore.exceptions import BaseError, NotFoundError
from obstore.store import LocalStore, from_url
from obstore.store import ObjectStore as Client

#: Objects up to this size go in one request; larger ones in parts of it, so many of which may be under way.
PART_BYTES: Final = 5 * 1024 * 1024
PARTS_AT_ONCE_MAX: Final = 2
#: What is read of an object at once.
PIECE_BYTES: Final = 256 * 1024

#: How the client words an answer of the store.
_STATUS: Final = re.compile(r"status code: (\d{3})")
#: Answers that a later try may not get: timeouts, conflicts with another request, too many requests.
_PASSING: Final = frozenset({408, 409, 423, 425, 429})


class ObjectsAway(RuntimeError):
    """The store failed; a later try may succeed."""


class ObjectRefused(RuntimeError):
    """The store answered that it does not take this object: a 4xx, as for a missing right or bucket, or a size."""


class ObjectMissing(RuntimeError):
    """There is no object of this name."""


class ObjectsWrong(ValueError):
    """The address of the store cannot be used; the text says why."""


class ObjectStore:
    """Objects by name. May be used from any thread."""

    def __init__(self, where: str) -> None:
        """`where` is a folder, or an address such as `s3://bucket/prefix` (keys and region in the environment, as AWS names them).

        Raises `ObjectsWrong`.
        """
        self._folder: Path | None = None
        try:
            if "://" in where:
                self._client: Client = from_url(where)
            else:
                self._folder = Path(where).absolute()
                self._client = LocalStore(self._folder, mkdir=True)
        except (BaseError, ValueError, OSError) as error:
            raise ObjectsWrong(f"{where} cannot be used as an object store: {error}") from error

    def put(self, name: str, values: Iterator[bytes], size_bytes: int) -> None:
        """Stores an object, in place of any of the same name, and returns once it is durable.

        Raises `ObjectRefused` or `ObjectsAway`. What `values` raises comes out as it is, and nothing is stored.
        """
        small = b"".join(values) if size_bytes <= PART_BYTES else None
        try:
            obstore.put(
                self._client,
                name,
                values if small is None else small,
                chunk_size=PART_BYTES,
                max_concurrency=PARTS_AT_ONCE_MAX,
            )
            if self._folder is not None:
                _make_durable(self._folder, self._folder / name)
        except (BaseError, OSError) as error:
            answer = _STATUS.search(str(error))
            status = 0 if answer is None else int(answer[1])
            if 400 <= status < 500 and status not in _PASSING:
                raise ObjectRefused(f"{name} is refused: {error}") from error
            raise ObjectsAway(f"{name} could not be stored: {error}") from error

    async def read(self, name: str) -> AsyncIterator[bytes]:
        """The object's bytes, piece by piece. Raises `ObjectMissing` or `ObjectsAway`, also in the middle."""
        try:
            found = await obstore.get_async(self._client, name)
            async for piece in found.stream(PIECE_BYTES):
                yield bytes(piece)
        except (NotFoundError, FileNotFoundError) as error:
            raise ObjectMissing(name) from error
        except (BaseError, OSError) as error:
            raise ObjectsAway(f"{name} could not be read: {error}") from error


def _make_durable(root: Path, path: Path) -> None:
    """The file, and the folders that lead to it: a machine that loses its power must not lose what was reported as stored."""
    _sync(path)
    for folder in path.parents:
        _sync(folder)
        if folder == root:
            return


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
