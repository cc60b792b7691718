// @ts-check
// The server's clock, by which ages are counted: that of the viewer may be wrong, or be set meanwhile. Pure.

/**
 * What the server's clock shows.
 * @param {number} server_ms - What it showed, as an answer says.
 * @param {number} came_ms - When the answer came, by a clock that nobody sets.
 * @param {number} ticked_ms - Now by the same clock, which is read once a second and may be behind.
 */
export const serverNow = (server_ms, came_ms, ticked_ms) => server_ms + Math.max(0, ticked_ms - came_ms);
