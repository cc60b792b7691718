import java.util.Arrays;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;

/** What a view is: values that the client states, and those that the collector derives. Stored apart: it seldom changes. */
final class Dimensions implements Wire.Stored {
    private static final int CUSTOM_MAX = 20;

    final String[] texts = new String[Names.TEXTS.length];
    final boolean[] stated = new boolean[Names.TEXTS.length];
    final long[] numbers = new long[Names.NUMBERS.length];
    Boolean autoplay;
    boolean isBot;
    boolean isDerived;
    final TreeMap<Integer, String> custom = new TreeMap<>();

    Dimensions() {
        Arrays.fill(numbers, -1);
    }

    /** Puts those of a beacon over older ones; whether anything changed. */
    boolean merge(Beacon beacon, boolean begins) {
        boolean changed = false;
        if (beacon.hasDimensions) {
            for (int at = 0; at < texts.length; at++) {
                if (beacon.given[at] && !(stated[at] && Objects.equals(texts[at], beacon.texts[at]))) {
                    texts[at] = beacon.texts[at];
                    changed = stated[at] = true;
                }
            }
            for (int at = 0; at < Names.ASN; at++) {
                if (beacon.numbers[at] >= 0 && numbers[at] != beacon.numbers[at]) {
                    numbers[at] = beacon.numbers[at];
                    changed = true;
                }
            }
            if (beacon.autoplay != null && !beacon.autoplay.equals(autoplay)) {
                autoplay = beacon.autoplay;
                changed = true;
            }
            changed |= mergeCustom(beacon);
        }
        return begins && !isDerived ? derive(beacon) : changed;
    }

    private boolean mergeCustom(Beacon beacon) {
        boolean changed = false;
        if (beacon.custom != null) {
            for (Map.Entry<Integer, String> one : beacon.custom.entrySet()) {
                if (custom.containsKey(one.getKey()) || custom.size() < CUSTOM_MAX) {
                    changed |= !one.getValue().equals(custom.put(one.getKey(), one.getValue()));
                }
            }
        }
        return changed;
    }

    /** A derived value stands where the client states none. */
    private boolean derive(Beacon beacon) {
        isDerived = true;
        isBot = beacon.isBot;
        numbers[Names.ASN] = beacon.asn;
        derive(Names.COUNTRY, beacon.country);
        derive(Names.BROWSER, beacon.browser);
        derive(Names.OS, beacon.os);
        derive(Names.DEVICE, beacon.device);
        return true;
    }

    private void derive(int at, String value) {
        if (!stated[at]) {
            texts[at] = value;
        }
    }

    @Override
    public void write(Wire.Writer out) {
        for (int at = 0; at < texts.length; at++) {
            out.text(texts[at]).flag(stated[at]);
        }
        for (long number : numbers) {
            out.number(number);
        }
        out.number(autoplay == null ? -1 : autoplay ? 1 : 0).flag(isBot).flag(isDerived).number(custom.size());
        custom.forEach((number, value) -> out.number(number).text(value));
    }

    static Dimensions read(Wire.Reader in) {
        Dimensions found = new Dimensions();
        for (int at = 0; at < found.texts.length; at++) {
            found.texts[at] = in.text();
            found.stated[at] = in.flag();
        }
        for (int at = 0; at < found.numbers.length; at++) {
            found.numbers[at] = in.number();
        }
        long autoplay = in.number();
        found.autoplay = autoplay < 0 ? null : autoplay == 1;
        found.isBot = in.flag();
        found.isDerived = in.flag();
        for (long left = in.number(); left > 0; left--) {
            found.custom.put((int) in.number(), in.text());
        }
        return found;
    }
}
