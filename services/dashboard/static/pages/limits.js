// The page of one customer's limits: what is in force, and what was refused or added up under (other). docs/query.md has the fields.

import { ago, byId, element, fetchSoon, problemOf, say, whole } from "./format.js";

const EVERY_MS = 10_000;
// A refusal that is younger says that the customer is beyond its limit now: collectors report every ten seconds.
const BEYOND_MS = 300_000;

const bytes = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const size = (value) => {
  const units = ["bytes", "kB", "MB", "GB", "TB"];
  const power = Math.min(units.length - 1, Math.max(0, Math.floor(Math.log10(Math.max(1, value)) / 3)));
  return `${bytes.format(value / 1000 ** power)} ${units[power]}`;
};
const counted = (noun) => (value) => `${whole.format(value)} ${noun}`;

// Of each limit its name, how a value in force reads, and how an amount that was refused reads.
const WORDS = {
  beacons_per_second: ["Beacons", (value) => `${whole.format(value)} a second`, counted("beacons")],
  new_views_per_second: ["New views", (value) => `${whole.format(value)} a second`, counted("new views")],
  spans_per_second: ["Spans", (value) => `${whole.format(value)} a second`, counted("spans")],
  calls_per_second: ["API calls", (value) => `${whole.format(value)} a second`, counted("API calls")],
  recordings_per_minute: ["Recordings", (value) => `${whole.format(value)} payloads a minute`, counted("payloads")],
  bytes_per_second: ["Bytes", (value) => `${size(value)} a second`, size],
  bytes_per_day: ["Stored bytes", (value) => `${size(value)} a day`, size],
  cpu_ms_per_second: ["Time to read requests", (value) => `${whole.format(value)} ms a second`, (value) => `${whole.format(value)} ms`],
  members_max: ["Distinct values of a dimension", (value) => `${whole.format(value)} an hour`, counted("values")],
};

const customer = new URLSearchParams(location.search).get("customer") ?? "";

// What people call a dimension, once it is known.
let titles = {};

async function askTitles() {
  try {
    const answer = await fetchSoon("/v1/dimensions");
    if (answer.ok) titles = Object.fromEntries((await answer.json()).dimensions.map(({ name, title }) => [name, title]));
  } catch {
    // Names of fields say it too.
  }
}

function inForce(limit, content) {
  if (limit.value === null) return "no limit known";
  const [, read] = WORDS[limit.name];
  const used = limit.name === "bytes_per_day" ? `, ${size(content.stored_bytes)} of them taken` : "";
  return `${read(limit.value)}${limit.is_own ? "" : " (default)"}${used}`;
}

function refused(limit, content) {
  if (limit.name === "members_max") {
    const gathered = Object.entries(content.gathered ?? {});
    if (content.gathered === null) return "not known: nothing has been published";
    return gathered.length
      ? `added up under (other), today and yesterday: ${gathered.map(([names, views]) => `${whole.format(views)} view${views === 1 ? "" : "s"} by ${names.split("+").map((name) => titles[name] ?? name).join(" and ")}`).join(", ")}`
      : "";
  }
  if (!limit.refused_requests) return "";
  const amount = limit.refused_amount ? ` with ${WORDS[limit.name][2](limit.refused_amount)}` : "";
  return `${whole.format(limit.refused_requests)} request${limit.refused_requests === 1 ? "" : "s"}${amount}`;
}

function draw(content) {
  const age = (limit) => (limit.last_refused_ms === null ? Infinity : Math.max(0, content.now_ms - limit.last_refused_ms));
  byId("source").textContent =
    `Rates hold at each collector, stored bytes at all together; ${whole.format(content.collectors)} collector${content.collectors === 1 ? "" : "s"} reported in the last minute.`;
  const beyond = content.limits.filter((limit) => age(limit) < BEYOND_MS);
  say("beyond", beyond.length ? `Beyond its limit in the last minutes: ${beyond.map(({ name }) => WORDS[name][0].toLowerCase()).join(", ")}.` : "");
  byId("limits").tBodies[0].replaceChildren(
    ...content.limits.map((limit) => {
      const head = element("th", WORDS[limit.name][0]);
      head.scope = "row";
      const row = element("tr", head);
      const what = refused(limit, content);
      const since = age(limit);
      row.append(
        element("td", inForce(limit, content)),
        element("td", what || "nothing", what ? "is-warm" : "none"),
        element("td", since === Infinity ? "–" : `${ago(since)} ago`, since === Infinity ? "none" : undefined),
      );
      return row;
    }),
  );
}

const titled = askTitles();

async function ask() {
  try {
    const [answer] = await Promise.all([fetchSoon(`/v1/limits?customer=${encodeURIComponent(customer)}`), titled]);
    const content = await answer.json();
    say("notice", answer.ok ? "" : `The limits cannot be shown: ${problemOf(content)}.`);
    byId("limits-section").hidden = !answer.ok;
    if (answer.ok) draw(content);
    else byId("source").textContent = "";
  } catch {
    say("notice", "The figures are not up to date: the dashboard's server does not answer.");
  }
}

byId("customer-name").textContent = customer;
ask();
setInterval(ask, EVERY_MS);
