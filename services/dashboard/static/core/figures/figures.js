// @ts-check
// What of a figure may be shown, and how it is judged: relative to the number of views on which it rests. Pure.

/** A percentile p of fewer views than this is not shown: fewer than five of them would lie beyond it. */
const BEYOND_MIN = 5;
/** 95 % of a normal distribution lie within so many deviations. */
const Z = 1.96;

/**
 * The smallest n of which a metric is shown: 1, and of a percentile as many as leave five views beyond it.
 * @param {string} metric - As `startup_ms_p95`.
 */
export function viewsMin(metric) {
  const found = /_p(\d\d)$/.exec(metric);
  const rank = found ? Number(found[1]) : 50;
  return rank <= 50 ? 1 : Math.round((100 * BEYOND_MIN) / (100 - rank));
}

/** The same of a quantile of a distribution, `p5` to `p99`: five views lie beyond it on its own side. @param {string} name */
export function quantileMin(name) {
  const rank = Number(name.slice(1));
  return viewsMin(`_p${Math.max(rank, 100 - rank)}`);
}

/**
 * @param {string} metric
 * @param {{value: number | null, n: number} | undefined} figure
 */
export function isShown(metric, figure) {
  return Boolean(figure) && /** @type {{n: number}} */ (figure).n >= viewsMin(metric);
}

/**
 * A figure as a chart has it; null is a gap. Without a view a count is 0, where it is known that there was none, and a share is nothing.
 * @param {string} metric
 * @param {{value: number | null, n: number} | undefined} figure
 * @param {boolean} isKnown - Whether views of that time are counted.
 */
export const drawnValue = (metric, figure, isKnown) => (isShown(metric, figure) || (isKnown && figure?.n === 0) ? (figure?.value ?? null) : null);

/**
 * Of a figure that has views and is not shown, why; else empty.
 * @param {string} metric
 * @param {{n: number} | undefined} figure
 */
export const hiddenText = (metric, figure) => (figure && figure.n > 0 && figure.n < viewsMin(metric) ? `not shown below ${viewsMin(metric)} views` : "");

/**
 * Says that some of the figures of a chart or a table are not shown for lack of views; else empty.
 * @param {string} metric
 * @param {(number | undefined)[]} counts - The n of each figure.
 * @param {string} sign - What stands for a figure that is not shown.
 */
export const hiddenNote = (metric, counts, sign) => (counts.some((n) => hiddenText(metric, { n: n ?? 0 })) ? `${sign}: a value is not shown below ${viewsMin(metric)} views.` : "");

/**
 * Where the true share lies with 95 % certainty, of `share` seen in n views (Wilson, 1927).
 * @param {number} share
 * @param {number} n
 * @returns {[number, number]}
 */
export function interval(share, n) {
  if (n === 0) return [0, 1];
  const middle = share + (Z * Z) / (2 * n);
  const reach = Z * Math.sqrt((share * (1 - share)) / n + (Z * Z) / (4 * n * n));
  const whole = 1 + (Z * Z) / n;
  return [Math.max(0, (middle - reach) / whole), Math.min(1, (middle + reach) / whole)];
}

/**
 * Up to `good` a figure is good, above `bad` it is bad; if less is worse, good from `good` on, and bad below `bad`. Of fewer than `n` views it is neither.
 * @typedef {{worse: "higher" | "lower", good: number, bad: number, n: number}} Threshold
 */

/** Shares of views (or viewers), not of time: n says how sure they are. */
const OF_VIEWS = new Set(["playback_failure_fraction", "startup_failure_fraction", "exit_before_start_fraction", "view_dropped_fraction", "spi_good_fraction", "live_rebuffering_fraction"]);

/**
 * Whether a figure is good or bad beyond doubt: of a share of views, the whole interval must be on one side of the threshold. One that is not shown is neither.
 * @param {Threshold | undefined} threshold
 * @param {string} metric
 * @param {{value: number | null, n: number} | undefined} figure
 * @returns {"" | "good" | "bad"}
 */
export function levelOf(threshold, metric, figure) {
  if (!threshold || !figure || figure.value === null || figure.n < threshold.n || !isShown(metric, figure)) return "";
  const isOfViews = OF_VIEWS.has(metric);
  const [low, high] = isOfViews ? interval(figure.value, figure.n) : [figure.value, figure.value];
  if (threshold.worse === "lower") return high < threshold.bad ? "bad" : low >= threshold.good ? "good" : "";
  if (low > threshold.bad) return "bad";
  return high <= threshold.good ? "good" : "";
}
