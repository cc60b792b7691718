"""Every limit of a view's state and row, in one place, so that no row can ever be larger than a store takes.

Texts are counted in characters: of at most 4 bytes in a stored row (MessagePack), and 6 in a finished one (JSON spells
control characters). With these limits one step takes less than 150 kB stored, a finished row less than 500 kB. A view takes
less than `MEASURED_BYTES` and two steps, and a store takes 950 kB (`engine.application.ROW_BYTES_MAX`).
"""

from collections.abc import Mapping
from typing import Final

#: What has an id, a title, a code; what may be an address or a sentence; what is a name among few. Longer ones are cut.
TEXT_CHARS_MAX: Final = 500
LONG_TEXT_CHARS_MAX: Final = 2_000
NAME_CHARS_MAX: Final = 100
#: By field of the row, where it is not `TEXT_CHARS_MAX`.
CHARS_MAX: Final[Mapping[str, int]] = {
    "source_url": LONG_TEXT_CHARS_MAX,
    "page_url": LONG_TEXT_CHARS_MAX,
    "error_message": LONG_TEXT_CHARS_MAX,
    "error_context": LONG_TEXT_CHARS_MAX,
    "cdn": NAME_CHARS_MAX,
}
#: Custom values of one view; the first that are named stay.
CUSTOM_VALUES_MAX: Final = 20
#: The longest text of played ranges that is kept (JSON, as the client sends it), and the ranges that a row holds.
RANGES_CHARS_MAX: Final = 4_000
RANGES_MAX: Final = 100

#: The first events of a view's life that are kept; what comes after them is in the counts alone.
TIMELINE_EVENTS_MAX: Final = 200
#: Changes of the CDN.
CDN_TRACE_MAX: Final = 32
#: No more time than the longest view passes between two steps, ms, also where a client's clock says more.
STEP_MS_MAX: Final = 86_400_000
#: Intervals between heartbeats from which a client's rhythm is known.
HEARTBEAT_INTERVALS_MAX: Final = 15
#: 10 Gbps.
BITRATE_BPS_MAX: Final = 10_000_000_000

#: Steps that may wait for a gap to close, and their bytes packed. Beyond either the gap is given up: a beacon that then
#: comes of it is late.
HELD_STEPS_MAX: Final = 256
HELD_BYTES_MAX: Final = 32_768
#: Folded steps that can still be taken back, where the source makes that necessary; older ones are settled.
RECENT_STEPS_MAX: Final = 64
#: Steps of a session that are arranged again with each step, where the client may have several clocks. In a session with more
#: that can be moved, only those around a step are: to arrange them costs up to some 25 µs of CPU time each, with each step.
ARRANGED_STEPS_MAX: Final = 256
#: Steps of a session that can still be moved. If there are more, plays before the last one are settled, the oldest first: one step
#: may make it necessary to arrange and fold all of them again.
SESSION_STEPS_MAX: Final = 1_024
#: When a view is measured, older ones that take more together are settled, too; bytes packed.
RECENT_BYTES_MAX: Final = 32_768
#: Identities of beacons that ranges of numbers cannot express: the newest are known when they come again.
KEYS_MAX: Final = 256
#: Ranges of sequence numbers by which it is known what came: beyond them the oldest are forgotten.
NUMBER_RANGES_MAX: Final = 256
#: What the folded part of a view may take in the store, bytes packed: what is neither held nor recent. Beyond it no text is
#: added (`truncated`), and times and counters go on.
VIEW_BYTES_MAX: Final = 65_536
#: A view is measured when all of it may take more than this, bytes.
MEASURED_BYTES: Final = VIEW_BYTES_MAX + HELD_BYTES_MAX + RECENT_BYTES_MAX

#: Plays of one session; the beacons of further ones are late.
PLAYS_MAX: Final = 100
