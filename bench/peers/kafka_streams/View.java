import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** The stored row of an open view. Times in ms, by the player's clock where nothing else is said; 0 is "not yet". */
final class View implements Wire.Stored {
    static final int STARTING = 1;
    static final int PLAYING = 2;
    static final int PAUSED = 3;
    static final int REBUFFERING = 4;
    static final int SEEKING = 5;
    static final int ENDED = 6;
    static final int FAILED = 7;
    static final int PLAYED_OUT = 1;
    static final int CLEAN_EXIT = 2;

    /** An event of the timeline. */
    record Event(long atMs, int code, long playheadMs, long bitrateBps) {}

    long firstAppendMs;
    long lastAppendMs;
    long nextSeq = 1;
    long missing;
    long beacons;
    long duplicates;
    long revision;
    long finishedMs;
    /** The deadline under which it stands in the store of deadlines; 0: under none. */
    long dueMs;
    boolean hasOffset;
    long offsetMs;

    int state;
    int stateBeforeSeek;
    int stateBeforeEnd;
    long atMs;
    long begunAtMs;
    long lastAtMs;
    long playingAtMs;
    boolean hasBegun;
    int ended;
    boolean isFatal;
    boolean sleeps;
    long playheadMs;
    long bitrateBps;
    long playingMs;
    long watchMs;
    long rebufferMs;
    long rebufferCount;
    long seekMs;
    long seekMsBefore;
    long longestSeekMs;
    long bitrateIntegral;
    long bitrateTimeMs;
    long renditionUp;
    long renditionDown;
    long latencySumMs;
    long latencyCount;
    long gapMs;
    long gapCount;
    /** Whether it has played, and what its start shows until then. */
    boolean hasPlayed;
    long playedAtMs;
    long gapMsBeforePlay;
    long startPlayheadMs = -1;
    long startPlayheadAtMs;

    boolean hasRequests;
    /** Requests: count, failed, cancelled; bytes, time, sum and maximum of the time to the first byte (-1: not known). */
    final long[] requests = {0, 0, 0, -1, -1, -1, -1};
    final long[] lastRequest = {-1, -1, -1, -1};

    final long[] counters = new long[Names.COUNTERS.length];
    final double[] reals = new double[Names.REALS.length];
    String ranges;
    boolean hasFailure;
    final String[] error = new String[4];
    boolean isBusiness;
    final List<String> cdns = new ArrayList<>();
    final List<Event> timeline = new ArrayList<>();

    /** What the live figures count it as: nothing, watching, rebuffering; at which bitrate, in which cohort. */
    int viewer;
    long shownBitrateBps;
    String cohort;
    boolean isStarted;
    boolean isOpen;
    long shownStartupMs = -1;
    boolean hasFailed;

    View() {
        Arrays.fill(counters, -1);
        Arrays.fill(reals, -1);
    }

    @Override
    public void write(Wire.Writer out) {
        out.number(firstAppendMs).number(lastAppendMs).number(nextSeq).number(missing).number(beacons);
        out.number(duplicates).number(revision).number(finishedMs).number(dueMs).flag(hasOffset).number(offsetMs);
        out.number(state).number(stateBeforeSeek).number(stateBeforeEnd).number(atMs).number(begunAtMs);
        out.number(lastAtMs).number(playingAtMs).flag(hasBegun).number(ended).flag(isFatal).flag(sleeps);
        out.number(playheadMs).number(bitrateBps).number(playingMs).number(watchMs).number(rebufferMs);
        out.number(rebufferCount).number(seekMs).number(seekMsBefore).number(longestSeekMs).number(bitrateIntegral);
        out.number(bitrateTimeMs).number(renditionUp).number(renditionDown).number(latencySumMs).number(latencyCount);
        out.number(gapMs).number(gapCount).flag(hasPlayed).number(playedAtMs).number(gapMsBeforePlay);
        out.number(startPlayheadMs).number(startPlayheadAtMs);
        writeDelivered(out);
        out.flag(hasFailure);
        if (hasFailure) {
            for (String text : error) {
                out.text(text);
            }
            out.flag(isBusiness);
        }
        out.number(cdns.size());
        cdns.forEach(out::text);
        out.number(timeline.size());
        for (Event event : timeline) {
            out.number(event.atMs - begunAtMs).number(event.code).number(event.playheadMs).number(event.bitrateBps);
        }
        out.number(viewer).number(shownBitrateBps).text(cohort).flag(isStarted).flag(isOpen);
        out.number(shownStartupMs).flag(hasFailed);
    }

    private void writeDelivered(Wire.Writer out) {
        out.flag(hasRequests);
        if (hasRequests) {
            for (long number : requests) {
                out.number(number);
            }
            for (long number : lastRequest) {
                out.number(number);
            }
        }
        for (long counter : counters) {
            out.number(counter);
        }
        boolean hasReals = Arrays.stream(reals).anyMatch(real -> real >= 0);
        out.flag(hasReals);
        if (hasReals) {
            for (double real : reals) {
                out.real(real);
            }
        }
        out.text(ranges);
    }

    static View read(Wire.Reader in) {
        View view = new View();
        view.firstAppendMs = in.number();
        view.lastAppendMs = in.number();
        view.nextSeq = in.number();
        view.missing = in.number();
        view.beacons = in.number();
        view.duplicates = in.number();
        view.revision = in.number();
        view.finishedMs = in.number();
        view.dueMs = in.number();
        view.hasOffset = in.flag();
        view.offsetMs = in.number();
        view.readProgress(in);
        view.readDelivered(in);
        view.hasFailure = in.flag();
        if (view.hasFailure) {
            for (int at = 0; at < view.error.length; at++) {
                view.error[at] = in.text();
            }
            view.isBusiness = in.flag();
        }
        for (long left = in.number(); left > 0; left--) {
            view.cdns.add(in.text());
        }
        for (long left = in.number(); left > 0; left--) {
            view.timeline.add(new Event(in.number() + view.begunAtMs, (int) in.number(), in.number(), in.number()));
        }
        view.viewer = (int) in.number();
        view.shownBitrateBps = in.number();
        view.cohort = in.text();
        view.isStarted = in.flag();
        view.isOpen = in.flag();
        view.shownStartupMs = in.number();
        view.hasFailed = in.flag();
        return view;
    }

    private void readProgress(Wire.Reader in) {
        state = (int) in.number();
        stateBeforeSeek = (int) in.number();
        stateBeforeEnd = (int) in.number();
        atMs = in.number();
        begunAtMs = in.number();
        lastAtMs = in.number();
        playingAtMs = in.number();
        hasBegun = in.flag();
        ended = (int) in.number();
        isFatal = in.flag();
        sleeps = in.flag();
        playheadMs = in.number();
        bitrateBps = in.number();
        playingMs = in.number();
        watchMs = in.number();
        rebufferMs = in.number();
        rebufferCount = in.number();
        seekMs = in.number();
        seekMsBefore = in.number();
        longestSeekMs = in.number();
        bitrateIntegral = in.number();
        bitrateTimeMs = in.number();
        renditionUp = in.number();
        renditionDown = in.number();
        latencySumMs = in.number();
        latencyCount = in.number();
        gapMs = in.number();
        gapCount = in.number();
        hasPlayed = in.flag();
        playedAtMs = in.number();
        gapMsBeforePlay = in.number();
        startPlayheadMs = in.number();
        startPlayheadAtMs = in.number();
    }

    private void readDelivered(Wire.Reader in) {
        hasRequests = in.flag();
        if (hasRequests) {
            for (int at = 0; at < requests.length; at++) {
                requests[at] = in.number();
            }
            for (int at = 0; at < lastRequest.length; at++) {
                lastRequest[at] = in.number();
            }
        }
        for (int at = 0; at < counters.length; at++) {
            counters[at] = in.number();
        }
        if (in.flag()) {
            for (int at = 0; at < reals.length; at++) {
                reals[at] = in.real();
            }
        }
        ranges = in.text();
    }
}
