"""A page a client: the lines of docs/clients.md as they stand, and the story that the viewer then lives through."""

import json
from dataclasses import dataclass
from string import Template
from typing import Final

from deploy.demo.viewers.clients_doc import lines_to_paste

_VIDEO: Final = '<video id="my-player" width="320" height="180" muted autoplay playsinline></video>'
_IMPORTS: Final = {
    "@eyevinn/player-analytics-client-sdk-web": "/packages/@eyevinn/player-analytics-client-sdk-web/dist/module.js",
    "@eyevinn/media-event-filter": "/packages/@eyevinn/media-event-filter/build/mef.min.js",
    "@eyevinn/player-analytics-specification/package.json": (
        "/packages/@eyevinn/player-analytics-specification/package.json"
    ),
}
_HLS: Final = "hls.js/dist/hls.min.js"
_PAGE: Final = Template("""<!doctype html>
<meta charset="utf-8">
<title>$story</title>
<link rel="icon" href="data:,">
<script type="importmap">$imports</script>
$scripts
$body
<script src="/story.js"></script>
<script type="module">
$before
$lines
tellStory('$kind', $player);
</script>
""")


@dataclass(frozen=True)
class Client:
    """How a page uses one client."""

    #: Its heading in docs/clients.md begins so.
    heading: str
    #: Whose interface the viewer uses: hls, dash, shaka.
    kind: str
    #: The name of the player in the lines.
    player: str
    packages: tuple[str, ...]
    #: What the page has besides the client.
    before: str = ""
    language: str = "js"


_PLAIN_HLS: Final = (
    "const hls = new Hls(); hls.loadSource('https://media.example.com/my-video/master.m3u8');"
    " hls.attachMedia(document.querySelector('#my-player'));"
)
CLIENTS: Final = {
    "mux": Client("mux-embed", "hls", "hls", ("mux-embed/dist/mux.js", _HLS)),
    "muxplayer": Client(
        "Mux Player",
        "hls",
        "await ofMuxPlayer()",
        ("@mux/mux-player/dist/mux-player.js",),
        language="html",
    ),
    "hls": Client("hls.js", "hls", "hls", (_HLS,)),
    "dash": Client("dash.js", "dash", "player", ("dashjs/dist/modern/umd/dash.all.min.js",)),
    "shaka": Client("Shaka", "shaka", "player", ("shaka-player/dist/shaka-player.compiled.debug.js",)),
    "epas": Client("EPAS", "hls", "hls", (_HLS,), before=_PLAIN_HLS),
    "native": Client("Native", "hls", "hls", (_HLS,), before=_PLAIN_HLS),
}


def page_of(story: str) -> str:
    """The page of `<client>-<story>`."""
    client = CLIENTS[story.partition("-")[0]]
    lines = lines_to_paste(client.heading, client.language)
    is_markup = client.language == "html"
    return _PAGE.substitute(
        story=story,
        imports=json.dumps({"imports": _IMPORTS}),
        scripts="\n".join(f'<script src="/packages/{package}"></script>' for package in client.packages),
        body=lines if is_markup else _VIDEO,
        before=client.before,
        lines="" if is_markup else lines,
        kind=client.kind,
        player=client.player,
    )
