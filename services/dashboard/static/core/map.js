// @ts-check
// A map of the world: shapes of countries as paths, and how a country is filled. Pure.

/** Width and height of the drawing: degrees, without the Antarctic. */
export const BOX = { width: 360, height: 145, north: 85 };

/**
 * @param {{geometry: {type: string, coordinates: any} | null}} feature - GeoJSON.
 * @returns {string} The path, one unit a degree (equirectangular).
 */
export function pathOf(feature) {
  const { type = "", coordinates = [] } = feature.geometry ?? {};
  const polygons = type === "MultiPolygon" ? coordinates : type === "Polygon" ? [coordinates] : [];
  return polygons.map((/** @type {number[][][]} */ rings) => rings.map(ringOf).join("")).join("");
}

/** A ring that crosses the date line goes on beyond the drawing's edge, instead of back through it. @param {number[][]} ring */
function ringOf(ring) {
  let turns = 0;
  const points = ring.map(([east, north], at) => {
    const step = at ? east - ring[at - 1][0] : 0;
    if (Math.abs(step) > 180) turns -= 360 * Math.sign(step);
    return `${(east + turns + 180).toFixed(1)} ${(BOX.north - north).toFixed(1)}`;
  });
  return `M${points.join("L")}Z`;
}

/**
 * Shapes by their code of two letters.
 * @param {{id: string, geometry: any}[]} features - With numeric codes of ISO 3166-1.
 * @param {string[][]} codes - Each: two letters, three letters, number.
 * @returns {{code: string, path: string}[]}
 */
export function shapesOf(features, codes) {
  const byNumber = new Map(codes.map(([two, , number]) => [number, two]));
  return features.map((one) => ({ code: byNumber.get(String(one.id).padStart(3, "0")) ?? "", path: pathOf(one) }));
}

/**
 * How strongly a country is filled: by its viewers beside those of the largest, so that small ones are seen too.
 * @param {number} viewers
 * @param {number} most
 */
export const strengthOf = (viewers, most) => (viewers > 0 ? 0.2 + 0.8 * (Math.log1p(viewers) / Math.log1p(Math.max(most, 1))) : 0);
