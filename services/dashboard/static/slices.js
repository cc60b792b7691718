// The live slices: what each value of the chosen dimensions has to do with the viewers now.

import { byId, element, fetchSoon, mbps, share, whole } from "./format.js";

const NAMES = { cdn: "CDN", stream_type: "stream type", player_name: "player", os: "system" };
const MANY = "There are too many customers to show slices of all: choose one above.";

let turn = 0;

// Asks for the slices of a customer and draws them; a newer question overtakes an older one.
export async function askSlices(customer) {
  const mine = ++turn;
  let slices = null;
  try {
    const answer = await fetchSoon(`/api/live/slices?customer=${encodeURIComponent(customer)}`);
    if (answer.ok) slices = await answer.json();
  } catch {
    return; // the status line shows that the server is away; what is drawn stays
  }
  if (mine === turn && slices) draw(slices);
}

function draw(slices) {
  const cards = Object.entries(slices.dimensions ?? {}).map(([name, values]) => card(name, values, slices.span_ms));
  byId("slices").replaceChildren(...cards);
  const note = slices.dimensions === null ? MANY : "";
  byId("slices-note").textContent = note;
  byId("slices-note").hidden = !note;
}

function card(name, values, span_ms) {
  const made = element("article", element("h3", `By ${NAMES[name] ?? name}`), "tile slice");
  made.id = `slice-${name}`;
  const most = Math.max(1, ...values.map((one) => one.viewers_now));
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const title of ["", "Viewers", "Rebuffering", "Bitrate", `Failed, ${span_ms / 1000} s`]) {
    const cell = element("th", title);
    cell.scope = "col";
    head.append(cell);
  }
  const body = table.createTBody();
  for (const one of values) body.append(row(one, most));
  made.append(table);
  return made;
}

function row(one, most) {
  const head = element("th", one.value);
  head.scope = "row";
  const bar = element("span", "", "bar");
  bar.style.width = `${(100 * one.viewers_now) / most}%`;
  head.append(bar);
  const waiting = one.viewers_now ? one.rebuffering_now / one.viewers_now : 0;
  const bitrate = one.bitrate_viewers_now ? mbps(one.bitrate_bps_now / one.bitrate_viewers_now) : null;
  const made = element("tr", head);
  made.append(
    element("td", whole.format(one.viewers_now)),
    element("td", one.viewers_now ? share.format(waiting) : "–", waiting > 0.1 ? "is-warm" : ""),
    element("td", bitrate ?? "–", bitrate ? "" : "none"),
    element("td", whole.format(one.playback_failures), one.playback_failures ? "is-bad" : ""),
  );
  return made;
}
