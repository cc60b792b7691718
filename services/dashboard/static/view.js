// One view: asks the processor for it, and draws its life: states, bitrates, ads, and every event in a table.

import { byId, element, fetchSoon, mbps, say, seconds, share, whole } from "./format.js";

const SVG = "http://www.w3.org/2000/svg";
const AGAIN_MS = 5_000;
const STATES = {
  viewstart: "starting",
  playing: "playing",
  pause: "paused",
  rebufferstart: "rebuffering",
  seekstart: "seeking",
  error: "failed",
  ended: "ended",
};
const LEGEND = ["starting", "playing", "paused", "rebuffering", "seeking", "failed"];
const PROBLEMS = {
  off: "Single views cannot be shown: the address of the processor's lookups is not set.",
  away: "No slot of the processor answers for this view just now. Try again in a moment.",
  refused: "The processor refuses the request: its token is not the dashboard's.",
  unknown: "The processor knows no such view. It shows views that are open, or that finished within the lateness window.",
  name: "A customer and a view id are wanted.",
  unreachable: "The dashboard's server does not answer.",
};

let turn = 0;

// Makes the form work, and shows the view that the address names (#view=<customer>/<view>).
export function offerView() {
  byId("view-form").addEventListener("submit", (event) => {
    event.preventDefault();
    location.hash = `view=${encodeURIComponent(byId("view-customer").value.trim())}/${encodeURIComponent(byId("view-id").value.trim())}`;
    follow();
  });
  addEventListener("hashchange", follow);
  follow();
}

function follow() {
  const named = /^#view=([^/]+)\/(.+)$/.exec(location.hash);
  if (!named) return;
  const [customer, view] = named.slice(1).map(decodeURIComponent);
  byId("view-customer").value = customer;
  byId("view-id").value = view;
  ask(customer, view, ++turn);
}

async function ask(customer, view, mine) {
  let answer = null;
  let problem = null;
  try {
    const reply = await fetchSoon(`/api/view?customer=${encodeURIComponent(customer)}&view=${encodeURIComponent(view)}`);
    const content = await reply.json();
    if (reply.ok) answer = content;
    else problem = content.error;
  } catch {
    problem = "unreachable";
  }
  if (mine !== turn) return; // a newer question is on its way
  const row = answer?.found?.row;
  const closed = answer && !row ? "This view is closed: its row is in the warehouse, the processor knows its number of revisions alone." : "";
  say("view-notice", problem ? (PROBLEMS[problem] ?? `The view cannot be loaded: ${problem}.`) : closed);
  byId("view-card").hidden = !row;
  if (row) draw(row, answer);
  // What is still open goes on.
  if (answer?.found?.state === "open") setTimeout(() => mine === turn && ask(customer, view, mine), AGAIN_MS);
}

function draw(row, answer) {
  const events = row.events ?? [];
  const span_ms = Math.max(1, row.view_end_ms - row.view_start_ms, ...events.map((event) => event.at_ms));
  const state = answer.found.state === "open" ? "still open" : `${row.end_reason}, revision ${row.revision}`;
  byId("view-title").textContent = `${row.video_title ?? row.video_id ?? "A view"} · ${row.source} · ${state}${answer.stale ? " · from a copy" : ""}`;
  byId("view-facts").replaceChildren(...facts(row).map(fact));
  byId("view-life").replaceChildren(...lanes(row, events, span_ms));
  byId("view-axis").replaceChildren(...axis(span_ms));
  byId("view-legend").replaceChildren(...LEGEND.map((name) => element("li", name, name)));
  byId("view-events").replaceChildren(...events.map(eventRow));
}

function fact([name, value]) {
  const made = element("div", element("dt", name));
  made.append(element("dd", value));
  return made;
}

function unknownStartup(row) {
  if (row.startup_unknown === "not_started") return row.playback_failed ? "failed" : "left before";
  return row.startup_ms_max ? `not known, ${seconds(row.startup_ms_max)} at most` : "not known";
}

function facts(row) {
  const waiting = row.watch_ms ? ` (${share.format((row.rebuffer_ms ?? 0) / row.watch_ms)})` : "";
  const rows = [
    ["Startup", seconds(row.startup_ms ?? null) ?? unknownStartup(row)],
    ["Watched", seconds(row.watch_ms ?? 0)],
    ["Rebuffering", `${row.rebuffer_count ?? 0} × · ${seconds(row.rebuffer_ms ?? 0)}${waiting}`],
    ["Seeks", `${row.seek_count ?? 0} × · ${seconds(row.seek_ms ?? 0)}`],
    ["Bitrate", mbps(row.avg_bitrate_bps ?? null)],
    ["Experience", row.score_view === undefined || row.score_view === null ? null : whole.format(row.score_view)],
    ["Error", row.error_code && [row.error_code, row.error_message].filter(Boolean).join(": ")],
    ["Ads", row.ad_impressions ? `${row.ad_impressions} · ${seconds(row.ad_playing_ms ?? 0)}` : null],
    ["CDN", row.cdn_trace?.length ? row.cdn_trace.join(" → ") : row.cdn],
    ["Player", [row.player_name, row.device, row.os, row.browser].filter(Boolean).join(" · ")],
    ["Beacons", `${row.beacon_count}${row.complete ? ", complete" : ""}`],
  ];
  return rows.filter(([, value]) => value);
}

// Stretches from each event that begins something to the next one that ends it, as [kind, from, to] in ms.
function stretches(events, span_ms, kindOf) {
  const found = [];
  let open = null;
  for (const [n, { at_ms, event }] of events.entries()) {
    const kind = kindOf(event, n);
    if (kind === undefined) continue;
    if (open) found.push([...open, at_ms]);
    open = kind ? [kind, at_ms] : null;
  }
  if (open && open[0] !== "ended") found.push([...open, span_ms]);
  return found.filter(([kind, from, to]) => to > from && kind !== "ended");
}

const adKind = (event) => (event === "adplaying" ? "ad" : /^ad(pause|ended|error|breakend)$/.test(event) ? null : undefined);

function lanes(row, events, span_ms) {
  // Not every error is the end: one after which something plays, or of a view that did not fail, changes no state.
  const failed = row.playback_failed || row.business_exception;
  const lastPlaying = events.findLastIndex(({ event }) => event === "playing");
  const stateOf = (event, n) => (event === "error" && !(failed && n > lastPlaying) ? undefined : STATES[event]);
  const states = stretches(events, span_ms, stateOf);
  const ads = stretches(events, span_ms, adKind);
  const made = [lane("State", blocks(states, span_ms))];
  if (ads.length) made.push(lane("Ads", blocks(ads, span_ms)));
  if (events.some((event) => event.bitrate_bps)) made.push(lane("Bitrate", bitrates(events, span_ms), "tall"));
  return made;
}

function lane(name, picture, kind) {
  const made = element("div", element("span", name, "lane-name"), kind ? `lane ${kind}` : "lane");
  made.append(picture);
  return made;
}

function drawing(label) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("viewBox", "0 0 1000 100");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", label);
  return picture;
}

function shape(name, attributes, title) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (title) made.append(Object.assign(document.createElementNS(SVG, "title"), { textContent: title }));
  return made;
}

function blocks(found, span_ms) {
  const picture = drawing(found.map(([kind, from, to]) => `${kind} ${seconds(to - from)}`).join(", "));
  for (const [kind, from, to] of found) {
    // What is too short to be seen is drawn all the same: stalls are what is looked for.
    const width = Math.max(2, ((to - from) / span_ms) * 1000);
    const x = Math.min(1000 - width, (from / span_ms) * 1000);
    picture.append(shape("rect", { class: kind, x, width, y: 0, height: 100 }, `${kind}: ${seconds(to - from)}, from ${seconds(from)}`));
  }
  return picture;
}

function bitrates(events, span_ms) {
  const levels = events.filter((event) => event.bitrate_bps);
  const top = Math.max(...levels.map((event) => event.bitrate_bps)) * 1.1;
  const picture = drawing(`Bitrate: ${levels.map((event) => mbps(event.bitrate_bps)).join(", ")}`);
  const x = (at_ms) => ((at_ms / span_ms) * 1000).toFixed(2);
  const y = (bps) => (100 - (bps / top) * 100).toFixed(2);
  let path = "";
  levels.forEach(({ at_ms, bitrate_bps }, n) => {
    path += n ? `H${x(at_ms)}V${y(bitrate_bps)}` : `M${x(at_ms)} ${y(bitrate_bps)}`;
  });
  path += "H1000";
  picture.append(shape("path", { class: "fill", d: `${path}V100H${x(levels[0].at_ms)}Z` }), shape("path", { class: "stroke", d: path }));
  return picture;
}

function axis(span_ms) {
  const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60, 120, 300, 600, 1800, 3600, 7200, 14_400].find((s) => span_ms / (s * 1000) <= 8) ?? 28_800;
  const ticks = [];
  for (let at = 0; at * 1000 <= span_ms; at += step) {
    const tick = element("span", clock(at));
    tick.style.left = `${(100 * at * 1000) / span_ms}%`;
    ticks.push(tick);
  }
  return ticks;
}

function clock(at) {
  if (at < 60) return `${Number(at.toFixed(1))} s`;
  const [h, m, s] = [Math.floor(at / 3600), Math.floor(at / 60) % 60, Math.floor(at % 60)];
  return h ? `${h}:${String(m).padStart(2, "0")} h` : `${m}:${String(s).padStart(2, "0")}`;
}

function eventRow({ at_ms, event, playhead_ms, bitrate_bps }) {
  const made = document.createElement("tr");
  made.append(element("th", seconds(at_ms)), element("td", event), element("td", seconds(playhead_ms ?? null) ?? "–"), element("td", mbps(bitrate_bps ?? null) ?? "–"));
  return made;
}
