// The page: listens to /api/live/stream, asks /api/quality, and shows how old everything is.

import { ago, byId, element, fraction, hour, limitsOf, mbps, minutes, say, seconds, share, tenth, time, whole } from "./format.js";
import { line } from "./line.js";
import { ask, offerLogout } from "./session.js";
import { askSlices } from "./slices.js";
import { offerView } from "./view.js";

const STALE_MS = 20_000;
const QUALITY_EVERY_MS = 1_000;
const LISTEN_AGAIN_MS = 5_000;
// The server sends something every 3 s. A stream that is silent for longer has no server behind it.
const SILENT_MS = 10_000;
const SILENT_RECONNECT_MS = 30_000;

const page = {
  picture: null, // the newest live picture
  ahead_ms: 0, // this clock's lead over the server's
  listening: false,
  unconfirmed: false, // Postgres is away: the server cannot tell whether this session still counts
  heard_at: 0, // when the stream last brought anything, on the clock of performance.now()
  customer: "*",
  quality: null,
  qualityError: null,
};

const serverNow = () => Date.now() - page.ahead_ms;

/* ---- Live ---- */

let stream = null;

function hear() {
  page.heard_at = performance.now();
  page.listening = true;
}

const silent_ms = () => (page.listening ? performance.now() - page.heard_at : 0);

function listen() {
  stream?.close();
  stream = new EventSource("/api/live/stream");
  stream.onopen = () => {
    hear();
    drawStatus();
  };
  stream.addEventListener("alive", hear);
  stream.addEventListener("unconfirmed", () => {
    hear();
    page.unconfirmed = true;
    drawStatus();
  });
  stream.onmessage = (event) => {
    page.picture = JSON.parse(event.data);
    page.unconfirmed = false;
    page.ahead_ms = Date.now() - page.picture.now_ms;
    hear();
    drawLive();
  };
  stream.onerror = () => {
    page.listening = false;
    drawStatus();
    // The browser tries again by itself, except after an answer that is not a stream.
    if (stream.readyState === EventSource.CLOSED) setTimeout(listen, LISTEN_AGAIN_MS);
  };
}

function drawLive() {
  const { picture } = page;
  drawChoice(Object.keys(picture.customers));
  const figures = picture.customers[page.customer] ?? picture.customers["*"];
  const seconds = picture.bucket_ms / 1000;
  const now = figures.now;
  const buckets = figures.series.viewers_now.length;
  const span = buckets ? `last ${minutes((buckets * picture.bucket_ms) / 60_000)}` : "";

  tile("viewers_now", now && whole.format(now.viewers_now), "", whole.format);
  const waiting = now && now.viewers_now ? `${share.format(now.rebuffering_now / now.viewers_now)} of viewers` : "";
  tile("rebuffering_now", now && whole.format(now.rebuffering_now), waiting, whole.format);
  tile("beacons", now && whole.format(now.beacons / seconds), "", (n) => `${tenth.format(n / seconds)}/s`);
  const known = buckets > 0;
  tile("views_started", known && whole.format(figures.totals.views_started), span, (n) => `${n} in ${seconds} s`);
  tile("views_finished", known && whole.format(figures.totals.views_finished), span, (n) => `${n} in ${seconds} s`);
  drawLiveTable(seconds);
  drawStatus();
  askSlices(page.customer);
}

function tile(name, value, aside, toText) {
  const { picture } = page;
  const element = byId(`tile-${name}`);
  element.querySelector(".value").textContent = value || (value === 0 ? "0" : "–");
  const beside = element.querySelector(".aside");
  if (beside) beside.textContent = aside;
  const figures = picture.customers[page.customer] ?? picture.customers["*"];
  line(element.querySelector(".line"), figures.series[name], {
    label: element.querySelector("h3").textContent,
    toText: (value, at) => `${time.format(picture.from_ms + (at + 1) * picture.bucket_ms)}  ${toText(value)}`,
  });
}

function drawLiveTable(seconds) {
  const { picture } = page;
  const rows = Object.entries(picture.customers)
    .filter(([customer, figures]) => customer !== "*" && figures.series.viewers_now.some((value) => value !== null))
    .sort(([, a], [, b]) => (b.now?.viewers_now ?? 0) - (a.now?.viewers_now ?? 0))
    .map(([customer, { now, totals }]) => {
      const waiting = now && now.viewers_now ? now.rebuffering_now / now.viewers_now : 0;
      const bitrate = now && now.bitrate_viewers_now ? now.bitrate_bps_now / now.bitrate_viewers_now : null;
      return {
        customer,
        cells: [
          [now && whole.format(now.viewers_now)],
          [now && whole.format(now.rebuffering_now), waiting > 0.1 ? "is-warm" : ""],
          [mbps(bitrate)],
          [now && tenth.format(now.beacons / seconds)],
          [whole.format(totals.views_started)],
          [whole.format(totals.playback_failures), totals.playback_failures ? "is-bad" : ""],
          [whole.format(totals.exits_before_start)],
        ],
      };
    });
  drawRows(byId("live-table"), rows, "No customer has been seen in these minutes.");
  const span = minutes((picture.customers["*"].series.viewers_now.length * picture.bucket_ms) / 60_000);
  const omitted = picture.customers_omitted ? ` · ${whole.format(picture.customers_omitted)} more customers, ${picture.omitted_in_all ? "in all customers alone" : "not shown"}` : "";
  byId("live-note").textContent = rows.length ? `started, failed and left: in the last ${span}${omitted}` : "";
}

function drawStatus() {
  const { picture, listening } = page;
  const age_ms = picture?.shown_until_ms ? Math.max(0, serverNow() - picture.shown_until_ms) : null;
  const old = age_ms !== null && age_ms > STALE_MS;
  const data = age_ms === null ? "no live data yet" : `live data ${ago(age_ms)} old`;
  let level = "good";
  let text = age_ms === null ? "No live data yet" : `Live · ${ago(age_ms)} old`;
  let notice = "";
  if (!picture && !listening) {
    [level, text, notice] = ["broken", "Dashboard out of reach", ""];
  } else if (!listening) {
    [level, text] = ["broken", `Dashboard out of reach · ${data}`];
    notice = "The dashboard's server does not answer. The page goes on trying.";
  } else if (silent_ms() > SILENT_MS) {
    [level, text] = ["broken", `Dashboard does not answer · ${data}`];
    notice = `The dashboard's server has sent nothing for ${ago(silent_ms())}. The figures below are as old as the status shows.`;
  } else if (page.unconfirmed) {
    [level, text] = ["broken", `Postgres out of reach · ${data}`];
    notice = "Postgres does not answer, so the server cannot tell who may see what. The page goes on as soon as it is back.";
  } else if (picture?.state === "away") {
    [level, text] = ["broken", `Kafka out of reach · ${data}`];
    notice = "Kafka does not answer, so nothing new comes in. The page goes on as soon as it is back.";
  } else if (picture?.state === "waiting") {
    [level, text] = ["waiting", "No live data yet"];
    notice = "Nothing has been counted in the last minutes. As soon as a player sends beacons, they show here.";
  } else if (picture?.partitions.behind.length && !old) {
    const { heard, behind } = picture.partitions;
    const oldest_ms = Math.min(...behind.map((one) => one.until_ms));
    [level, text] = ["old", `Incomplete · ${data}`];
    notice = `${behind.length} of ${heard} partitions are behind, for up to ${ago(Math.max(0, serverNow() - oldest_ms))}: their viewers are missing here.`;
  } else if (old) {
    [level, text] = ["old", `Stalled · ${data}`];
    notice = "No newer figures come in: either nobody has watched for a while, or the processor does not run.";
  }
  byId("status").dataset.level = level;
  if (byId("status-text").textContent !== text) byId("status-text").textContent = text;
  say("live-notice", notice);
  byId("tiles").classList.toggle("is-old", level !== "good");
  byId("live-table").classList.toggle("is-old", level !== "good");
}

/* ---- Quality ---- */

let asking = 0;
let answered = 0;

async function askQuality() {
  const turn = ++asking;
  let quality = null;
  let problem = null;
  try {
    const answer = await ask(`/api/quality?hours=${byId("hours").value}`);
    const content = await answer.json();
    if (answer.ok) quality = content;
    else problem = content.error;
  } catch {
    problem = "unreachable";
  }
  if (turn !== asking) return; // a newer question is on its way
  answered = turn;
  page.qualityError = problem;
  if (quality) page.quality = { ...quality, ahead_ms: Date.now() - quality.now_ms };
  drawQuality();
}

function drawQuality() {
  const { quality, qualityError } = page;
  const notices = {
    away: "Postgres does not answer, so the table cannot be brought up to date. The page asks again every second.",
    unpublished: "Nothing has been published yet: the finalizer has not run on this database.",
    refused: "Postgres refuses the query: its tables are not those this version of the dashboard knows.",
    unreachable: "The dashboard's server does not answer. The page goes on trying.",
  };
  const old = quality?.is_old
    ? `Views that finished ${ago(quality.now_ms - quality.missing_since_ms)} ago are missing here: the finalizer is behind, or does not run.`
    : "";
  say("quality-notice", qualityError ? (notices[qualityError] ?? `The table cannot be loaded: ${qualityError}.`) : old);
  byId("quality-table").classList.toggle("is-old", Boolean(qualityError || old));
  drawQualityNote();
  if (!quality) {
    drawRows(byId("quality-table"), [], qualityError ? "No data." : "Loading…");
    return;
  }
  const rows = quality.customers.flatMap((row) => [
    { customer: row.customer_id, cells: qualityCells(row) },
    ...Object.entries(row.by_source).map(([source, part]) => ({ name: `· ${source}`, cells: qualityCells(part) })),
  ]);
  const mixed = quality.customers.filter((row) => row.startup_sources.length > 1);
  say(
    "quality-mixed",
    mixed.length
      ? `Start-up times marked * mix clients that measure from different moments (${[...new Set(mixed.flatMap((row) => row.startup_sources))].sort().join(", ")}): the rows below those customers have each client alone.`
      : "",
  );
  const gathered = Object.entries(quality.gathered_dimensions);
  say(
    "quality-gathered",
    gathered.length
      ? `More values than are kept apart, so those with the fewest views are added up under (other): ${gathered.map(([customer, names]) => `${customer} (${names.join(", ")})`).join("; ")}.`
      : "",
  );
  drawRows(byId("quality-table"), rows, "No finished view has reached the warehouse in this window.");
}

function qualityCells(row) {
  return [
    [whole.format(row.views)],
    [startup(row, row.startup_ms_median)],
    [startup(row, row.startup_ms_p95)],
    [fraction(row.rebuffer_fraction), row.rebuffer_fraction > 0.02 ? "is-warm" : ""],
    [fraction(row.failure_fraction), row.failure_fraction > 0.02 ? "is-bad" : ""],
    [fraction(row.exit_before_start_fraction)],
    [mbps(row.bitrate_bps)],
  ];
}

// Several clients measure start-up from different moments: a quantile over them is marked.
function startup(row, ms) {
  const shown = seconds(ms);
  return shown && row.startup_sources.length > 1 ? `${shown} *` : shown;
}

function drawQualityNote() {
  const { quality } = page;
  if (!quality) return;
  const now_ms = Date.now() - quality.ahead_ms;
  const published = quality.published_ms
    ? `published ${ago(Math.max(0, now_ms - quality.published_ms))} ago`
    : "nothing published yet";
  const newest = quality.newest_hour_ms ? ` · newest hour ${hour.format(quality.newest_hour_ms)}` : "";
  const omitted = quality.customers_omitted ? ` · ${whole.format(quality.customers_omitted)} more customers not shown` : "";
  byId("quality-note").textContent = `${published}${newest}${omitted}`;
}

/* ---- Both ---- */

function drawChoice(customers) {
  const select = byId("customer");
  const wanted = customers.filter((customer) => customer !== "*").sort();
  const known = [...select.options].slice(1).map((option) => option.value);
  if (wanted.join() === known.join()) return;
  // A customer that is chosen stays, even when it falls silent.
  if (page.customer !== "*" && !wanted.includes(page.customer)) wanted.push(page.customer);
  select.replaceChildren(select.options[0], ...wanted.map((customer) => new Option(customer, customer)));
  select.value = page.customer;
}

function drawRows(table, rows, ifEmpty) {
  const body = table.tBodies[0];
  if (!rows.length) {
    const cell = element("td", ifEmpty, "empty");
    cell.colSpan = table.tHead.rows[0].cells.length;
    body.replaceChildren(element("tr", cell));
    return;
  }
  body.replaceChildren(
    ...rows.map(({ customer, name, cells }) => {
      const head = element("th", customer ? limitsOf(customer) : name);
      head.scope = "row";
      const row = element("tr", head);
      if (customer === page.customer) row.setAttribute("aria-current", "true");
      row.append(...cells.map(([text, kind]) => element("td", text || "–", text ? kind : "none")));
      return row;
    }),
  );
}

byId("customer").addEventListener("change", (event) => {
  page.customer = event.target.value;
  if (page.picture) drawLive();
  drawQuality();
});
byId("hours").addEventListener("change", askQuality);
setInterval(() => {
  if (silent_ms() > SILENT_RECONNECT_MS) {
    page.listening = false;
    listen();
  }
  drawStatus();
  drawQualityNote();
}, 1000);
setInterval(() => {
  // A slow answer is waited for, and a page that nobody sees asks nothing.
  if (answered === asking && !document.hidden) askQuality();
}, QUALITY_EVERY_MS);
listen();
askQuality();
offerView();
offerLogout();
