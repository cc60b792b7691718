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

/** What the server says where keys are in no table: a player's key is the customer's id then. */
const UNMANAGED = "Write keys are not managed here";

/**
 * The keys of a customer that are taken, and the one for its lines: empty where none is known. The customer's own id is one only where keys are not managed.
 * @param {{data: any, problem: {title: string} | null}} found - The answer of /v1/keys.
 * @param {{customer: string, chosen: string, made: string}} asked - `made`: a key that was just made.
 * @param {number} now_ms
 * @returns {{keys: any[], key: string, isMissing: boolean}} `isMissing`: the customer has no key.
 */
export function keysFor({ data, problem }, { customer, chosen, made }, now_ms) {
  const keys = (data?.keys ?? []).filter((/** @type {any} */ one) => one.revoked_ms === null && (one.expires_ms ?? Infinity) > now_ms);
  const known = keys.find((/** @type {any} */ one) => one.key === chosen)?.key || made || keys[0]?.key || "";
  const key = known || (problem?.title === UNMANAGED ? customer : "");
  return { keys, key, isMissing: Boolean(data) && !key };
}
