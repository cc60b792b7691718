// The operators' page: every partition of the processor with its owner and state, and every slot. docs/processor.md has the fields.

import { byId, element, fetchSoon, problemOf, say, whole } from "./format.js";

const EVERY_MS = 5_000;

// Title, how a partition's or a slot's cell reads, and the kind of a column of words or texts; null is shown as a dash.
const PARTITION = ["Partition", (one) => String(one.partition)];
const PARTITIONS = [
  PARTITION,
  ["Owner", (one) => one.owner, "text"],
  ["State", (one) => one.state, "word"],
  ["Lag, records", (one) => number(one.lag_records)],
  ["Standby lag, records", (one) => number(one.standby_lag_records)],
  ["Clock, UTC", (one) => moment(one.clock_ms)],
  ["Last commit, ms", (one) => number(one.commit_ms)],
  ["Age, ms", (one) => number(one.age_ms)],
  ["Restored, rows", (one) => number(one.restored_rows)],
  ["Rows/s", (one) => number(one.restored_rows_per_second)],
  ["To restore, records", (one) => number(one.restore_left_records)],
];
// What a partition holds, and what it left out.
const CONTENTS = [
  PARTITION,
  ["Rows", (one) => listed(one.rows), "text"],
  ["Tallies", (one) => listed(one.tallies), "text"],
  ["Timers due", (one) => number(one.timers_due)],
  ["Late", (one) => number(one.late)],
  ["Rejected", (one) => listed(one.rejected), "text"],
  ["Quarantined keys", (one) => number(one.quarantined_keys)],
  ["Commits dropped", (one) => listed(one.dropped_commits), "text"],
];
const SLOTS = [
  ["Slot", (one) => one.slot],
  ["Problem", (one) => one.problem, "text"],
  ["RSS, MiB", (one) => (one.rss_bytes === null ? null : number(Math.round(one.rss_bytes / 2 ** 20)))],
  ["CPU, µs a record", (one) => number(one.cpu_us_per_record)],
];
const WRONG = { unowned: "is-bad", unanswered: "is-warm", taking: "is-warm" };

const number = (value) => (value === null || value === undefined ? null : whole.format(value));
const moment = (ms) => (ms ? new Date(ms).toISOString().slice(0, 19).replace("T", " ") : null);
const listed = (numbers) =>
  Object.entries(numbers ?? {}).map(([name, value]) => `${name}\u00a0${whole.format(value)}`).join(", ");

function draw(table, columns, rows) {
  const head = document.createElement("tr");
  for (const [title, , kind] of columns) {
    const cell = element("th", title, kind);
    cell.scope = "col";
    head.append(cell);
  }
  table.tHead.replaceChildren(head);
  table.tBodies[0].replaceChildren(
    ...rows.map((one) => {
      const row = document.createElement("tr");
      for (const [, read, kind = ""] of columns) {
        const text = read(one);
        row.append(element("td", text || "–", `${kind} ${text ? (WRONG[text] ?? "") : "none"}`));
      }
      return row;
    }),
  );
}

async function ask() {
  try {
    const answer = await fetchSoon("/v1/partitions");
    const content = await answer.json();
    say("notice", answer.ok ? "" : `The figures are not up to date: ${problemOf(content)}.`);
    if (!answer.ok) return;
    byId("source").textContent = `${content.application}, as ${content.answered_by} sees it`;
    draw(byId("partitions"), PARTITIONS, content.partitions);
    draw(byId("contents"), CONTENTS, content.partitions);
    draw(byId("slots"), SLOTS, content.slots);
  } catch {
    say("notice", "The figures are not up to date: the dashboard's server does not answer.");
  }
}

ask();
setInterval(ask, EVERY_MS);
