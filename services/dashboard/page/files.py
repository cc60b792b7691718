"""The files of the page, read once when the process starts, and served compressed. What is not among them is not served."""

import base64
import gzip
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from aiohttp import web

_TYPES: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
}
_OTHER_TYPE: Final = "text/plain"
_IMPORT_MAP: Final = re.compile(r'<script type="importmap">(.*?)</script>', re.DOTALL)
#: Everything that a page needs comes from here.
POLICY: Final = (
    "default-src 'none'; script-src 'self'{scripts}; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@dataclass(frozen=True)
class _File:
    body: bytes
    compressed: bytes
    content_type: str
    etag: str


class Files:
    """The files of a folder by their path in it."""

    def __init__(self, folder: Path) -> None:
        self._files = {str(path.relative_to(folder)): _read(path) for path in folder.rglob("*") if path.is_file()}

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """The file that the route's `path` names."""
        return self.answer(request, request.match_info["path"])

    def answer(self, request: web.Request, path: str) -> web.StreamResponse:
        """One file; 304 where the browser has it. Raises `HTTPNotFound`."""
        found = self._files.get(path)
        if found is None:
            raise web.HTTPNotFound
        headers = {"ETag": f'"{found.etag}"', "Vary": "Accept-Encoding"}
        if any(known.value == found.etag for known in request.if_none_match or ()):
            return web.Response(status=304, headers=headers)
        body = found.body
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            headers["Content-Encoding"], body = "gzip", found.compressed
        if found.content_type == _TYPES[".html"]:
            headers["Content-Security-Policy"] = _policy(found.body.decode())
        return web.Response(body=body, headers=headers, content_type=found.content_type, charset="utf-8")


def _read(path: Path) -> _File:
    body = path.read_bytes()
    content_type = _TYPES.get(path.suffix, _OTHER_TYPE)
    # Without a time in it, so that every process gives the same bytes.
    return _File(body, gzip.compress(body, mtime=0), content_type, hashlib.sha256(body).hexdigest()[:32])


def _policy(html: str) -> str:
    """The policy of a page: of scripts in the page itself only its import map runs, which browsers take from nowhere else."""
    found = _IMPORT_MAP.search(html)
    if found is None:
        return POLICY.format(scripts="")
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    return POLICY.format(scripts=f" 'sha256-{digest}'")
