// @ts-check
// Answers of /v1/timeseries as lines of a chart. Pure.

import { isShown } from "./figures.js";

/** @typedef {{value: number | null, n: number}} Figure */
/** @typedef {{from_ms: number, to_ms: number, n: number, metrics: Record<string, Figure>}} Point */
/** @typedef {{kind: string, key: (string | null)[], labels: string[], n: number, points?: Point[], metrics: Record<string, Figure>}} Group */
/** @typedef {{title: string, kind: string, key: (string | null)[], values: (number | null)[], counts: number[], isBefore?: boolean}} Line */

/**
 * @param {{points: Point[], groups?: Group[], compared?: {points: Point[], groups?: Group[]}}} answer
 * @param {string} metric
 * @param {string} title - Of the only line.
 * @returns {{times: number[], lines: Line[]}} Times in seconds since 1970. What is not shown for lack of views is a gap.
 */
export function linesOf(answer, metric, title) {
  const groups = answer.groups?.filter((one) => one.n > 0 || one.kind === "value") ?? [{ kind: "value", key: [], labels: [title], n: 0, points: answer.points, metrics: {} }];
  const times = (groups[0]?.points ?? []).map((point) => point.from_ms / 1_000);
  const lines = groups.map((group) => lineOf(group.labels.join(" · "), group, metric));
  const before = answer.compared?.points ?? [];
  if (before.length && !answer.groups) {
    const line = lineOf(`${title}, before`, { ...groups[0], points: before }, metric);
    // Buckets of two ranges may differ in number by one, where clocks change.
    const fit = (/** @type {any[]} */ values, /** @type {any} */ filler) => times.map((_, at) => values[at] ?? filler);
    lines.push({ ...line, values: fit(line.values, null), counts: fit(line.counts, 0), isBefore: true });
  }
  return { times, lines };
}

/** The largest value of all lines: one scale for charts beside each other. @param {Line[]} lines */
export const topOf = (lines) => Math.max(0, ...lines.flatMap((line) => line.values.map((value) => value ?? 0)));

/**
 * @param {string} title
 * @param {Group} group
 * @param {string} metric
 * @returns {Line}
 */
function lineOf(title, group, metric) {
  const figures = (group.points ?? []).map((point) => point.metrics[metric]);
  return {
    title,
    kind: group.kind,
    key: group.key,
    values: figures.map((figure) => (isShown(metric, figure) ? figure.value : null)),
    counts: figures.map((figure) => figure?.n ?? 0),
  };
}
