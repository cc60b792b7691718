// @ts-check
// Lines to paste into a player: those of docs/clients.md, with one's own collector and write key. Pure.

/** @typedef {{name: string, title: string, note: string, text: string}} Client */
/** Where beacons go: `host` may have a port. @typedef {{scheme: string, host: string}} Collector */

/** A scheme or none, a name or address, a port or none. Nothing else gets into lines that somebody pastes. */
const ADDRESS = /^(?:(https?):\/\/)?((?:[a-z\d](?:[a-z\d.-]{0,251}[a-z\d])?|\[[\da-f:.]{2,45}\])(?::\d{1,5})?)\/?$/i;
const LOOPBACK = /^(?:127\.0\.0\.1|\[::1\])(?=:|$)/;
const LOCAL = /^(?:localhost|127\.0\.0\.1|\[::1\])$/;

/**
 * The collector that a text names; null where it names none. A scheme may be typed. Without one it is http on this machine, and where the page itself is on
 * http at the same host: as the demo and the first try have it. Everything else has TLS.
 * @param {string} text
 * @param {{protocol: string, hostname: string}} page - As `location` has it.
 * @returns {Collector | null}
 */
export function collectorOf(text, page) {
  const found = ADDRESS.exec(text.trim());
  if (!found) return null;
  const [, typed, host] = found;
  const name = host.replace(/:\d+$/, "").toLowerCase();
  const isPlain = LOCAL.test(name) || (page.protocol === "http:" && name === page.hostname);
  return { scheme: typed?.toLowerCase() ?? (isPlain ? "http" : "https"), host };
}

/**
 * The lines of a client for this collector and write key. The SDKs of Mux call https everywhere but at `localhost`, so that this machine has that name in theirs.
 * @param {Client} client
 * @param {Collector} collector
 * @param {string} key
 */
export function linesFor({ name, text }, { scheme, host }, key) {
  const named = name.startsWith("mux") ? host.replace(LOOPBACK, "localhost") : host;
  /** @type {Record<string, string>} */
  const own = { "https://collect.example.com": `${scheme}://${named}`, "collect.example.com": named, acme: key };
  // In one go: what was put in is not looked at again.
  return text.replace(/(?:https:\/\/)?collect\.example\.com|\bacme\b/g, (found) => own[found]);
}
