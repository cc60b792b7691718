"""The files of the page, read once when the process starts, and served compressed. No other file is served."""

import base64
import gzip
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from aiohttp import web

from services.dashboard.page import bundle

_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".map": "application/json",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
}
_OTHER_TYPE: Final = "text/plain"
#: Everything that a page needs comes from here.
POLICY: Final = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Files:
    """The files of a folder by their path in it."""

    def __init__(self, folder: Path) -> None:
        self._files = {path: File.of(body, Path(path).suffix) for path, body in bundle.read(folder).items()}

    def add(self, path: str, text: str) -> None:
        """One more file, which is made of others."""
        self._files[path] = File.of(text.encode(), Path(path).suffix)

    def bodies(self) -> dict[str, bytes]:
        """The files by their path."""
        return {path: found.body for path, found in self._files.items()}

    def texts(self, suffixes: Sequence[str]) -> dict[str, str]:
        """The files with these suffixes, by their path. Those of a bundle, which may be damaged, are not among them."""
        return {
            path: found.body.decode()
            for path, found in self._files.items()
            if path.endswith(tuple(suffixes)) and not path.startswith(f"{bundle.FOLDER}/")
        }

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The file that the route's `path` names."""
        return self.answer(request, request.match_info["path"])

    def answer(self, request: web.Request, path: str) -> web.StreamResponse:
        """One file; 304 where the browser has it. Raises `HTTPNotFound`."""
        found = self._files.get(path)
        if found is None:
            raise web.HTTPNotFound
        return found.answer(request)


@dataclass(frozen=True)
class File:
    """One file as it is sent."""

    body: bytes
    content_type: str
    etag: str

    @classmethod
    def of(cls, body: bytes, suffix: str) -> "File":
        """A file of these bytes."""
        return cls(body, _TYPES.get(suffix, _OTHER_TYPE), hashlib.sha256(body).hexdigest()[:32])

    @cached_property
    def compressed(self) -> bytes:
        """The body as gzip, made when it is first sent: where a bundle is served, nobody loads most files."""
        # Without a time in it, so that every process gives the same bytes.
        return gzip.compress(self.body, mtime=0)

    def answer(self, request: web.Request) -> web.StreamResponse:
        """The file; 304 where the browser has it."""
        headers = {"ETag": f'"{self.etag}"', "Vary": "Accept-Encoding"}
        if any(known.value == self.etag for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        body = self.body
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"], body = "gzip", self.compressed
        if self.content_type == _TYPES[".html"]:
            headers["Content-Security-Policy"] = _policy(self.body.decode())
        return web.Response(body=body, headers=headers, content_type=self.content_type, charset="utf-8")


def _policy(html: str) -> str:
    """The policy of a page: of scripts in the page itself only its import map runs, which browsers take from nowhere else."""
    found = bundle.IMPORT_MAP.search(html)
    if found is None:
        return POLICY.format(scripts="")
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    return POLICY.format(scripts=f" 'sha256-{digest}'")
