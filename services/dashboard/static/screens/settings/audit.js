// @ts-check
// Settings: who did what, when, from where.

import { momentText } from "../../core/place/ranges.js";
import { Answered } from "../../parts/data/asking.js";
import { html } from "../../parts/html.js";
import { Link, place } from "../../parts/place.js";
import { Table, useList } from "./lists.js";

export default function Audit() {
  const { more } = place.value;
  const { found } = useList(`/v1/audit?${new URLSearchParams({ limit: "100", cursor: more.cursor ?? "" })}`);
  return html`<p>Export: <a href="/v1/audit/export?format=csv">CSV</a> · <a href="/v1/audit/export?format=jsonl">JSON lines</a></p>
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => html`<${Table} label="Audit log" heads=${["When", "Who", "From", "What", "Of what"]}>${data.entries.map((/** @type {any} */ one) => html`<tr key=${one.id}><th scope="row">${momentText(one.at_ms, place.value.tz, { seconds: true, year: true })}</th><td>${one.actor}</td><td>${one.address ?? "–"}</td><td>${one.action.replaceAll("_", " ")}</td><td>${one.target}</td></tr>`)}<//>
      ${data.next && html`<p><${Link} to=${{ more: { ...more, cursor: data.next } }}>Older<//></p>`}`} />`;
}
