// @ts-check
// By which thresholds live figures are good or bad, and what of them is judged. Pure.

import { TILES } from "./live.js";

/** By tile. A count is judged as its share of the tile's n, as the share of finished views is. @type {Record<string, {metric: string, isShare?: boolean}>} */
const JUDGED = {
  rebuffering: { metric: "live_rebuffering_fraction" },
  bitrate: { metric: "live_bitrate_bps" },
  failures: { metric: "playback_failure_fraction", isShare: true },
  exits: { metric: "exit_before_start_fraction", isShare: true },
};

/**
 * What is judged of the figures of all viewers, a slice or a customer; null where no threshold is of it.
 * @param {string} name - Of a tile.
 * @param {import("./live.js").Figures | null | undefined} figures
 * @returns {{metric: string, figure: {value: number | null, n: number}} | null}
 */
export function judgedOf(name, figures) {
  const judged = JUDGED[name];
  const tile = TILES.find((one) => one.name === name);
  if (!judged || !tile?.n || !figures) return null;
  const n = figures[tile.n] ?? 0;
  const value = n ? tile.of(figures) : null;
  // Views that fail now may have started before what is counted: their share is at most all.
  return { metric: judged.metric, figure: { value: judged.isShare && value !== null ? Math.min(1, value / n) : value, n } };
}
