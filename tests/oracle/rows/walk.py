"""The oracle's walk along a play: the state after each beacon, and the time that counts until the next one.

Written from `docs/view.md`, sections State, Time, gaps and clocks, and Whether and when a view played.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tests.oracle.rows.delays import Delays, runs_back, trusts_first
from tests.oracle.rows.reading import Step, is_live, shows_view

DAY_MS: Final = 86_400_000
_WAITING: Final = ("starting", "rebuffering", "seeking")
_COUNTING: Final = (*_WAITING, "playing")
_HEARTBEATS: Final = ("hb", "heartbeat", "t")


@dataclass(slots=True)
class Span:
    """One timed beacon and what lies between it and the next one. Times in ms; `at_ms` is corrected for clock steps."""

    step: Step
    at_ms: int
    state: str
    before: str
    #: Whether anything played before or at it.
    has_played: bool
    #: What counts until the next beacon; the last `played_ms` of it count as playing, in any state.
    ms: int = 0
    played_ms: int = 0
    gap_ms: int = 0
    stepped: bool = False
    #: The beacon after it shows that the clock was set back before; by how much, if that is a gap.
    set_back: bool = False
    missing_ms: int = 0
    #: Whether an ad plays after it.
    in_ad: bool = False


class Walk:
    """The spans of one play, made in its order."""

    def __init__(self, play: Sequence[Step], delay_before_ms: int | None = None) -> None:
        self._delays = Delays(delay_before_ms)
        self.spans: list[Span] = []
        self._beats: list[int] = []
        self._intervals: list[int] = []
        self._requests: list[int] = []
        self._request_count = 0
        self._before_seek = ""
        self._seeks_stall = False
        self._failed = False
        self._in_break = self._in_ad = False
        self._rates: list[tuple[int, int]] = []
        self._playhead: tuple[int, int] | None = None
        self._live = self._begun = False
        #: Whether the server's clock alone gave what elapsed last, and the corrected time of the newest beacon of which it did.
        self._by_server = False
        self._ahead_at = 0
        #: Silences in playing before the rhythm is known, and the gap that each of them is then.
        self._unjudged: list[tuple[Span, int, int]] = []
        for one in play:
            if one.is_request:
                self._request_count += bool(self.spans)
                self._requests.append(one.at_ms + int(one.attrs.get("ttlb", 0)))
            else:
                self._take(one)

    def _take(self, one: Step) -> None:
        kind = is_live(one)
        self._live = self._live if kind is None else kind
        before, at_ms = "none", one.at_ms
        if self.spans:
            last = self.spans[-1]
            at_ms = self._between(last, one)
            before = "playing" if last.played_ms else last.state
        else:
            self._note_heartbeat(one, at_ms)
            self._late(one, at_ms)
        one.runs_back = runs_back(one, [span.step for span in self.spans])
        has_played = bool(self.spans) and (self.spans[-1].has_played or self.spans[-1].played_ms > 0)
        state = self._after(one, before, has_played=has_played)
        self.spans.append(Span(one, at_ms, state, before, has_played or state == "playing"))
        self._requests = []
        self._advertise(one)
        self.spans[-1].in_ad = self._in_ad
        if state == "seeking":
            self._playhead = None
        elif one.playhead_ms is not None:
            self._playhead = one.playhead_ms, at_ms
        elif shows_view(one) and not self._begun and self._playhead is None:
            self._playhead = 0, at_ms
        self._begun = self._begun or shows_view(one)

    def _note_heartbeat(self, one: Step, at_ms: int) -> None:
        if one.name not in _HEARTBEATS:
            return
        if self._beats and len(self._intervals) < 15:
            self._intervals.append(min(at_ms - self._beats[-1], 300_000))
        self._beats.append(at_ms)

    def _judge_again(self) -> None:
        """Judges silences of before again, after a heartbeat."""
        rhythm = self._rhythm_ms()
        for span, silence, gap in self._unjudged:
            if silence > (rhythm or 300_000):
                span.gap_ms, span.ms = gap, span.ms - gap
        self._unjudged = [one for one in self._unjudged if not one[0].gap_ms and rhythm is None]

    def _rhythm_ms(self) -> int | None:
        """The longest silence by the heartbeats so far."""
        if len(self._intervals) < 3:
            return None
        return max(90_000, 3 * sorted(self._intervals)[(len(self._intervals) - 1) // 4])

    def _advertise(self, one: Step) -> None:
        match one.ad:
            case "adbreakstart":
                self._in_break, self._in_ad = True, False
            case "adbreakend":
                self._in_break = self._in_ad = False
            case "adplaying":
                self._in_break = self._in_ad = True
            case "adplay" | "adpause" | "adended" | "aderror":
                self._in_break, self._in_ad = True, False

    def _after(self, one: Step, before: str, *, has_played: bool) -> str:
        """The state after a beacon."""
        after = one.state
        if one.name == "play" and not has_played:
            after = "starting"
        if one.name == "rebufferend" and one.source != "mux" and not has_played:
            after = "starting"
        if one.name == "seekend":
            return self._before_seek if before == "seeking" else before
        if after == "rebuffering" and before in ("seeking", "failed"):
            after = ""
        if after == "seeking" and before != "seeking":
            self._before_seek = before
        return after or before

    def _between(self, last: Span, one: Step) -> int:
        """Settles what counts between the last beacon and this one; returns this one's corrected time."""
        counting = last.state in _COUNTING or self._in_ad
        advance = self._advance(last, one)
        elapsed, last.stepped = self._elapsed(last, one, advance, counting=counting)
        elapsed = min(elapsed, DAY_MS)
        at_ms = last.at_ms + elapsed
        heard = list(self._beats), list(self._intervals)
        self._note_heartbeat(one, at_ms)
        if counting:
            last.gap_ms, slow = self._gap(last, one, elapsed, advance)
            if slow is not None:
                elapsed, self._by_server = min(elapsed, slow), False
                at_ms = last.at_ms + elapsed
                self._beats, self._intervals = heard
                self._note_heartbeat(one, at_ms)
        if self._by_server and elapsed <= 90_000 and last.step.own_name != "devicesleep":
            self._ahead_at = at_ms
        last.ms = elapsed - last.gap_ms
        if advance and last.ms >= 5_000:
            self._rates.append((advance, last.ms))
        at_ms = self._late(one, at_ms)
        last.played_ms = self._shown(last, one, at_ms)
        if one.name in _HEARTBEATS:
            self._judge_again()
        return at_ms

    @property
    def delay_after_ms(self) -> int | None:
        """The usual delay by the client's clock after the play; that of before where the play does not show it."""
        # A play may have requests alone.
        shift_ms = self.spans[-1].at_ms - self.spans[-1].step.at_ms if self.spans else 0
        return self._delays.after_ms(shift_ms)

    @staticmethod
    def _advance(last: Span, one: Step) -> int | None:
        """How far the playhead went where that is a witness of what played."""
        from_ms, to_ms = last.step.playhead_ms, one.playhead_ms
        if last.state != "playing" or one.is_seek or from_ms is None or to_ms is None or to_ms < from_ms:
            return None
        return to_ms - from_ms

    def _rate_of(self, advance: int | None) -> int | None:
        """The time that the playhead takes for an advance, at the rate that it had twice, or once if that is 1."""
        if advance is None:
            return None
        if not self._rates:
            return advance
        (first, first_ms), (last, last_ms) = [(1, 1), *self._rates][-2:]
        if not last_ms <= 4 * last <= 16 * last_ms or 10 * abs(last * first_ms - first * last_ms) > last * first_ms:
            return None
        return advance * last_ms // last

    def _is_slow(self, last: Span, one: Step, advance: int | None, most: int) -> bool:
        """Whether a request took longer than the playhead's advance, by more than two seconds and so much at the most."""
        server = one.at_ms + one.offset_ms - last.at_ms - self._delays.usual(one)
        played = self._rate_of(advance)
        return played is not None and played >= 5_000 and 2_000 < server - played <= most

    def _elapsed(self, last: Span, one: Step, advance: int | None, *, counting: bool) -> tuple[int, bool]:
        server = one.at_ms + one.offset_ms - last.at_ms - self._delays.usual(one)
        client = one.at_ms - last.step.at_ms
        if last.at_ms == self._ahead_at and self._delays.knows(one) and 8_000 < client - server <= 90_000:
            self._by_server = True
            return max(server, 0), False
        elapsed, stepped = self._by_witnesses(last, one, advance, counting=counting)
        self._by_server = stepped and elapsed == server
        return elapsed, stepped

    def _by_witnesses(self, last: Span, one: Step, advance: int | None, *, counting: bool) -> tuple[int, bool]:
        client = one.at_ms - last.step.at_ms
        server = one.at_ms + one.offset_ms - last.at_ms - self._delays.usual(one)
        if client < 0 and server < 0:
            return advance if advance is not None else 0, True
        played = self._rate_of(advance)
        # Nothing has shown yet at which rate the viewer plays.
        fast = not self._rates and advance is not None and client < advance <= 4 * client
        longer = client >= 0 and not self._live and played is not None and played > client + 8_000 and not fast
        if longer and played is not None and self._is_slow(last, one, advance, DAY_MS):
            return played, True
        witnessed = advance is not None and advance >= client / 2
        further = played or 0
        known, possible = self._delays.knows(one), server >= -2_000 or client > 90_000
        lines = (
            client < 0,
            client > 90_000 and server < client - 30_000 and not witnessed and (known or counting),
            30_000 < client <= 90_000 and possible and server < client - 30_000 and not witnessed and known,
            self._delays.is_sure
            and not trusts_first(one)
            and possible
            and server < client - 8_000
            and further <= server + 2_000,
            played is not None
            and played >= 5_000
            and abs(server - played) <= 2_000
            and abs(server - client) > 8_000
            and not fast,
            advance is not None and 20_000 < client <= 90_000 and max(advance, server) < client - 10_000,
        )
        if not any(lines):
            return client, False
        if played is not None and self._is_slow(last, one, advance, 30_000):
            return played, True
        return max(server, 0), True

    def _late(self, one: Step, at_ms: int) -> int:
        """Notes a beacon's delay; the corrected time, of the first beacon that shows that the clock was set back before, too."""
        counting = bool(self.spans) and (self.spans[-1].state in _COUNTING or self._in_ad)
        shown = self._delays.take(one, at_ms, counting=counting, is_ahead=at_ms == self._ahead_at)
        if shown is None:
            return at_ms
        missing, self.spans[-1].missing_ms = shown
        self.spans[-1].set_back = True
        if one.name in _HEARTBEATS:
            self._beats[-1] += missing
            if len(self._beats) <= 16 and self._intervals:
                self._intervals[-1] = min(self._intervals[-1] + missing, 300_000)
        return at_ms + missing

    def _limit_ms(self, last: Span, one: Step, advance: int | None) -> int | None:
        if one.source == "mux":
            return 90_000
        rhythm = self._rhythm_ms()
        if rhythm is not None:
            return rhythm
        waits = last.state in _WAITING and not self._in_ad
        if self._beats or waits or advance is not None:
            return 300_000
        return 600_000 if self._request_count >= 3 else None

    def _gap(self, last: Span, one: Step, elapsed: int, advance: int | None) -> tuple[int, int | None]:
        """The gap; and what elapsed by the playhead, where there is none and the request was slow."""
        if last.step.own_name == "devicesleep":
            return elapsed, None
        silence, before = 0, last.at_ms
        shift = last.at_ms - last.step.at_ms
        for at_ms in [*(ended + shift for ended in self._requests), last.at_ms + elapsed]:
            silence = max(silence, at_ms - before)
            before = max(before, at_ms)
        silence = min(silence, elapsed)
        if self._live and advance is not None and advance >= elapsed / 2:
            advance = None
        gap = silence
        if advance is not None and advance <= 4 * elapsed:
            gap = elapsed - advance if elapsed - advance > 10_000 else 0
        limit = self._limit_ms(last, one, advance)
        if limit is not None and silence > limit:
            return gap, None
        if last.stepped and self._is_slow(last, one, advance, DAY_MS):
            return 0, self._rate_of(advance)
        playing = last.state == "playing" and not self._in_break and one.source != "mux"
        if silence > 90_000 and gap and playing and self._rhythm_ms() is None and len(self._unjudged) < 8:
            self._unjudged.append((last, silence, gap))
        return 0, None

    def _shown(self, last: Span, one: Step, at_ms: int) -> int:
        """How long it played by the playhead alone, while the beacons still said that it was starting."""
        early = last.state in ("starting", "rebuffering") and not last.has_played
        if self._playhead is None or one.playhead_ms is None or self._in_break or not early:
            return 0
        advance = one.playhead_ms - self._playhead[0]
        if advance < 250 or advance > 4 * (at_ms - self._playhead[1]) or one.state == "seeking":
            return 0
        return min(advance, last.ms)
