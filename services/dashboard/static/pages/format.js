// How the page words numbers and times, and makes its elements.

export const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const tenth = new Intl.NumberFormat("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
export const share = new Intl.NumberFormat("en", { style: "percent", minimumFractionDigits: 1, maximumFractionDigits: 1 });
export const time = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const hour = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

/** An element of the document, which has it. @param {string} id @returns {any} */
export const byId = (id) => document.getElementById(id);

export function element(name, content, kind) {
  const made = document.createElement(name);
  made.append(content);
  if (kind) made.className = kind;
  return made;
}

// A customer's name leads to its limits.
export function limitsOf(customer) {
  const link = element("a", customer);
  link.href = `/limits?customer=${encodeURIComponent(customer)}`;
  return link;
}

// What an answer that is a problem (RFC 9457) says, as the end of a sentence.
export function problemOf({ title, detail }) {
  const end = detail ? `: ${detail}` : "";
  return `${title[0].toLowerCase()}${title.slice(1)}${end}`.replace(/\.$/, "");
}

// A question that ends: with its answer, or as if the server were away. The server's own deadlines are shorter.
const ANSWER_MS_MAX = 12_000;
export const fetchSoon = (path) => fetch(path, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });

export function say(id, text) {
  const notice = byId(id);
  if (notice.textContent !== text) notice.textContent = text;
  notice.hidden = !text;
}

export function ago(ms) {
  const s = Math.round(ms / 1000);
  if (s < 120) return `${s} s`;
  if (s < 7200) return `${Math.round(s / 60)} min`;
  return `${Math.round(s / 3600)} h`;
}

export const minutes = (count) => (count < 1 ? `${Math.round(count * 60)} s` : `${Math.round(count)} min`);
export const seconds = (ms) => (ms === null ? null : `${(ms / 1000).toFixed(2)} s`);
export const fraction = (value) => (value === null ? null : share.format(value));
export const mbps = (bps) => (bps === null ? null : `${(bps / 1e6).toFixed(2)} Mbps`);
