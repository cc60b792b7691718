/** The rules of docs/view.md for mux-embed's beacons that come in order, without ads and without a clock that steps. */
final class Rules {
    private static final int ON_RENDITION = 20;
    private static final int ON_ERROR = 21;
    private static final int ON_WARNING = 22;
    private static final int BEFORE_SEEK = 8;
    private static final int WANTED = 9;
    private static final int TIMELINE_MAX = 200;
    private static final int CDNS_MAX = 32;
    private static final long DAY_MS = 86_400_000;
    private static final long ADVANCE_MS_MIN = 250;
    private static final long RATE_MAX = 4;
    private static final long NUMBER_MAX = 9_000_000_000_000L;
    private static final int[] PLAYED = {
        Names.PLAYING, Names.CONTENT_PLAYBACK, Names.SCALE_TIME, Names.REBUFFER_COUNT,
    };

    private Rules() {}

    /** Folds the next beacon of a view. */
    static void fold(View view, Beacon beacon) {
        String event = beacon.event;
        long atMs = beacon.clientTimeMs;
        passTime(view, beacon, atMs);
        if (event.equals("viewstart") && !view.hasBegun) {
            view.hasBegun = true;
            view.begunAtMs = atMs;
            if (view.startPlayheadMs < 0 && beacon.playheadMs < 0) {
                view.startPlayheadMs = 0;
                view.startPlayheadAtMs = atMs;
            }
        }
        if (beacon.bitrateBps > 0) {
            changeBitrate(view, beacon, event.equals("rendition"));
        }
        int given = stateOf(event);
        if (given != 0) {
            enter(view, beacon, given);
        }
        if (event.equals("ended")) {
            view.ended |= View.PLAYED_OUT;
        } else if (event.equals("viewend")) {
            view.ended |= View.CLEAN_EXIT;
        }
        if (event.equals("ended") || showsPlaying(beacon)) {
            showPlaying(view, atMs);
        }
        takeValues(view, beacon, event);
        if (view.playingAtMs == 0) {
            if (view.state == View.SEEKING) {
                view.startPlayheadMs = -1;
            } else if (beacon.playheadMs >= 0) {
                view.startPlayheadMs = beacon.playheadMs;
                view.startPlayheadAtMs = atMs;
            }
        }
    }

    private static int stateOf(String event) {
        return switch (event) {
            case "viewstart" -> View.STARTING;
            case "play" -> WANTED;
            case "playing", "rebufferend" -> View.PLAYING;
            case "pause" -> View.PAUSED;
            case "rebufferstart" -> View.REBUFFERING;
            case "seekstart" -> View.SEEKING;
            case "seekend" -> BEFORE_SEEK;
            case "ended", "viewend" -> View.ENDED;
            case "error" -> View.FAILED;
            default -> 0;
        };
    }

    private static void passTime(View view, Beacon beacon, long atMs) {
        if (view.atMs != 0) {
            long elapsedMs = Math.max(0, Math.min(atMs - view.atMs, DAY_MS));
            if (view.sleeps && isWatching(view.state)) {
                view.gapMs += elapsedMs;
                view.gapCount++;
                view.gapMsBeforePlay += view.hasPlayed ? 0 : elapsedMs;
                elapsedMs = 0;
            }
            long advancedMs = view.playingAtMs == 0 ? Math.min(advancedMs(view, beacon, atMs), elapsedMs) : 0;
            integrate(view, elapsedMs - advancedMs);
            if (advancedMs > 0) {
                view.state = View.PLAYING;
                view.playingAtMs = atMs - advancedMs;
                note(view, beacon, View.PLAYING, view.playingAtMs);
                showPlaying(view, atMs);
                integrate(view, advancedMs);
            }
        }
        view.atMs = atMs;
        view.lastAtMs = Math.max(view.lastAtMs, atMs);
        view.sleeps = beacon.sourceEvent.equals("devicesleep");
    }

    private static long advancedMs(View view, Beacon beacon, long atMs) {
        if (beacon.playheadMs < 0 || view.startPlayheadMs < 0 || beacon.event.equals("seekstart")) {
            return 0;
        }
        if (view.state != View.STARTING && view.state != View.REBUFFERING) {
            return 0;
        }
        long advanceMs = beacon.playheadMs - view.startPlayheadMs;
        long elapsedMs = atMs - view.startPlayheadAtMs;
        return advanceMs >= ADVANCE_MS_MIN && advanceMs <= RATE_MAX * elapsedMs ? advanceMs : 0;
    }

    private static boolean isWatching(int state) {
        return state == View.STARTING || state == View.PLAYING || state == View.REBUFFERING || state == View.SEEKING;
    }

    private static void integrate(View view, long elapsedMs) {
        int state = view.state;
        if (isWatching(state) && !(state == View.SEEKING && view.stateBeforeSeek == View.PAUSED)) {
            view.watchMs += elapsedMs;
        }
        if (state == View.PLAYING) {
            view.playingMs += elapsedMs;
            if (view.bitrateBps > 0) {
                view.bitrateIntegral = Math.min(view.bitrateIntegral + view.bitrateBps * elapsedMs, 1L << 60);
                view.bitrateTimeMs += elapsedMs;
            }
        } else if (state == View.REBUFFERING && view.playingAtMs != 0) {
            view.rebufferMs += elapsedMs;
        } else if (state == View.SEEKING) {
            view.seekMs += elapsedMs;
        }
    }

    private static void changeBitrate(View view, Beacon beacon, boolean isRendition) {
        long before = view.bitrateBps;
        view.bitrateBps = beacon.bitrateBps;
        if (isRendition) {
            view.renditionUp += before > 0 && beacon.bitrateBps > before ? 1 : 0;
            view.renditionDown += before > 0 && beacon.bitrateBps < before ? 1 : 0;
            if (beacon.bitrateBps != before) {
                note(view, beacon, ON_RENDITION, beacon.clientTimeMs);
            }
        }
    }

    private static void enter(View view, Beacon beacon, int given) {
        int before = view.state;
        int after = ledTo(view, given);
        long atMs = beacon.clientTimeMs;
        if (after == View.PLAYING) {
            showPlaying(view, atMs);
        }
        if (after == before) {
            if (given == View.FAILED) {
                note(view, beacon, ON_ERROR, atMs);
            }
            return;
        }
        if (before == View.SEEKING) {
            view.longestSeekMs = longestSeekMs(view);
        }
        if (after == View.SEEKING) {
            view.seekMsBefore = view.seekMs;
            view.stateBeforeSeek = before;
        } else if (after == View.REBUFFERING && view.playingAtMs != 0 && given == View.REBUFFERING) {
            view.rebufferCount++;
        } else if (after == View.PLAYING && view.playingAtMs == 0) {
            view.playingAtMs = atMs;
        } else if (after == View.FAILED) {
            view.isFatal = true;
        }
        if (after == View.ENDED && before != 0) {
            view.stateBeforeEnd = before;
        }
        view.state = after;
        if (after != 0) {
            note(view, beacon, after, atMs);
        }
    }

    private static int ledTo(View view, int given) {
        int before = view.state;
        return switch (given) {
            case BEFORE_SEEK -> before == View.SEEKING ? view.stateBeforeSeek : before;
            case WANTED -> before != 0 && view.playingAtMs != 0 ? before : View.STARTING;
            case View.REBUFFERING -> before == View.SEEKING || before == View.FAILED ? before : given;
            default -> given;
        };
    }

    static long longestSeekMs(View view) {
        long seekMs = Math.min(view.seekMs - view.seekMsBefore, DAY_MS);
        return view.state == View.SEEKING ? Math.max(view.longestSeekMs, seekMs) : view.longestSeekMs;
    }

    private static boolean showsPlaying(Beacon beacon) {
        for (int at : PLAYED) {
            if (beacon.counters[at] > 0) {
                return true;
            }
        }
        return false;
    }

    private static void showPlaying(View view, long atMs) {
        view.playedAtMs = view.hasPlayed ? Math.min(view.playedAtMs, atMs) : atMs;
        view.hasPlayed = true;
    }

    private static void takeValues(View view, Beacon beacon, String event) {
        view.playheadMs = Math.max(view.playheadMs, beacon.playheadMs);
        if (beacon.hasCounters) {
            for (int at = 0; at < view.counters.length; at++) {
                if (beacon.counters[at] >= 0) {
                    view.counters[at] = beacon.counters[at];
                }
            }
            for (int at = 0; at < view.reals.length; at++) {
                if (beacon.reals[at] >= 0) {
                    view.reals[at] = beacon.reals[at];
                }
            }
            view.ranges = beacon.ranges != null ? beacon.ranges : view.ranges;
        }
        if (event.equals("error")) {
            view.hasFailure = true;
            System.arraycopy(beacon.error, 0, view.error, 0, view.error.length);
            view.isBusiness = beacon.isBusiness;
        } else if (event.equals("warning")) {
            note(view, beacon, ON_WARNING, beacon.clientTimeMs);
        } else if (event.equals("request")) {
            countRequest(view, beacon);
        }
        String cdn = beacon.texts[Names.CDN];
        int known = view.cdns.size();
        if (cdn != null && !cdn.isEmpty() && known < CDNS_MAX && (known == 0 || !view.cdns.get(known - 1).equals(cdn))) {
            view.cdns.add(cdn);
        }
        long programMs = event.equals("viewend") ? 0 : beacon.program();
        if (programMs > 0) {
            view.latencySumMs += beacon.clientTimeMs - programMs;
            view.latencyCount++;
        }
        if (beacon.hasClockOffset && (!view.hasOffset || beacon.clockOffsetMs < view.offsetMs)) {
            view.hasOffset = true;
            view.offsetMs = beacon.clockOffsetMs;
        }
    }

    private static void countRequest(View view, Beacon beacon) {
        long[] sums = view.requests;
        long[] sent = view.lastRequest;
        view.hasRequests = true;
        sums[0]++;
        for (int at = 0; at < sent.length; at++) {
            // mux-embed sends only what changed.
            sent[at] = beacon.request[at] >= 0 ? beacon.request[at] : sent[at];
        }
        if (beacon.sourceEvent.equals("requestcanceled")) {
            sums[2]++;
            return;
        }
        if (beacon.sourceEvent.equals("requestfailed")) {
            sums[1]++;
            return;
        }
        if (sent[3] >= 0) {
            sums[3] = Math.min(Math.max(sums[3], 0) + sent[3], NUMBER_MAX);
        }
        if (sent[0] >= 0 && sent[2] >= 0) {
            sums[4] = Math.max(sums[4], 0) + Math.min(Math.max(0, sent[2] - sent[0]), DAY_MS);
        }
        if (sent[0] >= 0 && sent[1] >= 0) {
            long firstByteMs = Math.min(Math.max(0, sent[1] - sent[0]), DAY_MS);
            sums[5] = Math.max(sums[5], 0) + firstByteMs;
            sums[6] = Math.max(sums[6], firstByteMs);
        }
    }

    private static void note(View view, Beacon beacon, int code, long atMs) {
        if (view.timeline.size() < TIMELINE_MAX) {
            view.timeline.add(new View.Event(atMs, code, Math.max(0, beacon.playheadMs), view.bitrateBps));
        }
    }
}
