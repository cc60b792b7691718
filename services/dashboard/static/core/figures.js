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

/**
 * @param {string} metric
 * @param {{value: number | null, n: number} | undefined} figure
 */
export function isShown(metric, figure) {
  return Boolean(figure) && /** @type {{n: number}} */ (figure).n >= viewsMin(metric);
}

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

/** From which figure on a metric is bad; below `n` views nothing is judged but shares. @type {Record<string, {bad: number, n: number}>} */
export const THRESHOLDS = {
  rebuffer_fraction: { bad: 0.02, n: 30 },
  playback_failure_fraction: { bad: 0.02, n: 1 },
  startup_failure_fraction: { bad: 0.02, n: 1 },
  exit_before_start_fraction: { bad: 0.08, n: 1 },
  startup_ms_p50: { bad: 3_000, n: 30 },
  startup_ms_p95: { bad: 8_000, n: 100 },
};

/**
 * Whether a figure is bad beyond doubt: of a share of views, the whole interval must be beyond the threshold.
 * @param {string} metric
 * @param {{value: number | null, n: number} | undefined} figure
 */
export function isBad(metric, figure) {
  const threshold = THRESHOLDS[metric];
  if (!threshold || !figure || figure.value === null || figure.n < threshold.n) return false;
  const isOfViews = metric.endsWith("_fraction") && threshold.n === 1;
  return (isOfViews ? interval(figure.value, figure.n)[0] : figure.value) > threshold.bad;
}
