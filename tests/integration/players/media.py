"""A video of two renditions with sound, as HLS and as DASH over the same segments; made once by ffmpeg and kept."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import Final

from deploy.local.paths import LOCAL

SECONDS: Final = 30
SEGMENT_SECONDS: Final = 2
RATE_FPS: Final = 15
#: Height in pixels and bitrate in kbps of each rendition.
RENDITIONS: Final = {90: 100, 180: 400}

_VIDEO: Final = f"testsrc2=size=320x180:rate={RATE_FPS}:duration={SECONDS}"
_SOUND: Final = f"sine=frequency=440:duration={SECONDS}"


def made_media() -> Path:
    """The folder that holds `master.m3u8`, `main.mpd` and `seg-<rendition>-<number>.m4s`, numbers from 1."""
    arguments = _arguments()
    folder = LOCAL / "media" / hashlib.sha256("\0".join(arguments).encode()).hexdigest()[:16]
    if not folder.exists():
        shutil.rmtree(folder.parent, ignore_errors=True)
        half_made = folder.with_name("new")
        half_made.mkdir(parents=True)
        subprocess.run(["ffmpeg", *arguments], cwd=half_made, check=True, timeout=120)
        # ffmpeg says so although each rendition has an initialization of its own.
        manifest = half_made / "main.mpd"
        manifest.write_text(manifest.read_text().replace('bitstreamSwitching="true"', 'bitstreamSwitching="false"'))
        half_made.rename(folder)
    return folder


def _arguments() -> list[str]:
    inputs = ["-f", "lavfi", "-i", _VIDEO, "-f", "lavfi", "-i", _SOUND]
    scaled = [f"[v{at}]scale=-2:{height}[r{at}]" for at, height in enumerate(RENDITIONS)]
    split = f"[0:v]split={len(RENDITIONS)}" + "".join(f"[v{at}]" for at in range(len(RENDITIONS)))
    frames = str(SEGMENT_SECONDS * RATE_FPS)
    video = ["-c:v", "libx264", "-preset", "veryfast", "-profile:v", "main", "-level:v", "3.0", "-pix_fmt", "yuv420p"]
    video += ["-bf", "0", "-sc_threshold", "0"]
    video += ["-g", frames, "-keyint_min", frames]
    for at, kbps in enumerate(RENDITIONS.values()):
        video += [f"-b:v:{at}", f"{kbps}k", f"-maxrate:v:{at}", f"{kbps}k", f"-bufsize:v:{at}", f"{kbps}k"]
    streams = [part for at in range(len(RENDITIONS)) for part in ("-map", f"[r{at}]")]
    dash = ["-f", "dash", "-seg_duration", str(SEGMENT_SECONDS), "-use_template", "1", "-use_timeline", "0"]
    names = ["-init_seg_name", "init-$RepresentationID$.mp4", "-media_seg_name", "seg-$RepresentationID$-$Number$.m4s"]
    return [
        *("-hide_banner", "-loglevel", "error"),
        *inputs,
        *("-filter_complex", ";".join([split, *scaled])),
        *streams,
        *("-map", "1:a"),
        *video,
        *("-c:a", "aac", "-b:a", "48k", "-ac", "1"),
        *dash,
        *("-hls_playlist", "1", "-adaptation_sets", "id=0,streams=v id=1,streams=a"),
        *names,
        "main.mpd",
    ]
