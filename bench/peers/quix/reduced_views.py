"""The fold of `bench.processor.reduced` on Quix Streams: `python reduced_views.py NAME BOOTSTRAP STATE_DIR COMMIT_MS COMMITS_FILE`.

Run by `python -m bench.processor` in an environment of its own (requirements.txt). Exactly once; values are bytes to Quix and
decoded by msgspec here, since its JSON deserializer would build every field; the state is bytes too.
"""

import struct
import sys
import time
from pathlib import Path

import msgspec
from quixstreams import Application
from quixstreams.checkpointing import Checkpoint
from quixstreams.state import State

STATES = {"viewstart": 1, "playing": 2, "rebufferend": 2, "pause": 3, "rebufferstart": 4, "viewend": 5}
STATE = struct.Struct(">7q")
NEW = (0,) * 7


class Beacon(msgspec.Struct, gc=False):
    event: str
    seq: int
    client_time_ms: int
    playhead_ms: int = 0


class Row(msgspec.Struct):
    count: int
    duplicates: int
    playing_ms: int
    max_playhead_ms: int
    state: int


decode = msgspec.json.Decoder(Beacon).decode
encode = msgspec.json.encode


def fold(value: bytes, state: State) -> tuple[bytes, ...]:
    beacon = decode(value)
    stored = state.get_bytes("view")
    seen, count, duplicates, playing_ms, max_playhead_ms, code, at_ms = NEW if stored is None else STATE.unpack(stored)
    bit = 1 << beacon.seq
    if seen & bit:
        duplicates += 1
    else:
        seen |= bit
        count += 1
        now_ms = beacon.client_time_ms
        if now_ms > at_ms:
            if code == 2:
                playing_ms += now_ms - at_ms
            at_ms = now_ms
        if beacon.playhead_ms > max_playhead_ms:  # noqa: PLR1730  (a call costs more)
            max_playhead_ms = beacon.playhead_ms
        code = STATES.get(beacon.event, code)
        if beacon.event == "viewend":
            state.delete("view")
            return (encode(Row(count, duplicates, playing_ms, max_playhead_ms, code)),)
    state.set_bytes("view", STATE.pack(seen, count, duplicates, playing_ms, max_playhead_ms, code, at_ms))
    return ()


def main() -> None:
    name, bootstrap, state_dir, commit_ms, commits_file = sys.argv[1:]
    commits: list[float] = []
    commit = Checkpoint.commit

    def timed(self: Checkpoint, **named: bool) -> None:
        began = time.perf_counter()
        commit(self, **named)
        commits.append((time.perf_counter() - began) * 1000)

    Checkpoint.commit = timed
    app = Application(
        broker_address=bootstrap,
        consumer_group=name,
        auto_offset_reset="earliest",
        commit_interval=int(commit_ms) / 1000,
        processing_guarantee="exactly-once",
        state_dir=state_dir,
        loglevel="WARNING",
        consumer_extra_config={"fetch.queue.backoff.ms": 5, "enable.partition.eof": False},
        producer_extra_config={"compression.codec": "lz4", "queue.buffering.max.messages": 1_000_000},
    )
    beacons = app.topic("beacons", value_deserializer="bytes", key_deserializer="bytes")
    rows = app.topic(f"{name}.rows", value_serializer="bytes", key_serializer="bytes")
    app.dataframe(beacons).apply(fold, stateful=True, expand=True).to_topic(rows)
    app.run()
    Path(commits_file).write_text("\n".join(f"{ms:.3f}" for ms in commits))


if __name__ == "__main__":
    main()
