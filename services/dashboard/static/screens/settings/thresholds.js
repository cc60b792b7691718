// @ts-check
// Settings, thresholds: from which figure on the page shows a metric as good or bad, for all environments or for one.

import { useSignal } from "@preact/signals";
import { judgedGroups, LIVE } from "../../core/figures/threshold_groups.js";
import { viewsMin } from "../../core/figures/figures.js";
import { capital, metricOf, metrics } from "../../parts/data/known.js";
import { Answered, useFetched } from "../../parts/data/asking.js";
import { Field } from "../../parts/inputs/field.js";
import { Meaning, MetricMeaning } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { go, place } from "../../parts/place.js";
import { change, session } from "../../parts/data/session.js";
import { askThresholds } from "../../parts/notable/thresholds.js";
import { Environments } from "./lists.js";

const ORIGINS = { customer: "this environment's", organisation: "all environments'", default: "as installed" };

export default function Thresholds() {
  const version = useSignal(0);
  const search = useSignal("");
  const { more } = place.value;
  const of = more.of ?? "";
  const found = useFetched(`thresholds ${of}`, () => `/v1/thresholds?${new URLSearchParams({ customer: of })}`, 0, version.value);
  const set = async (/** @type {any} */ body) => {
    await change("PATCH", "/v1/thresholds", { ...body, customer: of });
    version.value += 1;
    askThresholds(place.value.customer);
  };
  const show = (/** @type {any} */ event) => {
    event.preventDefault();
    go({ more: { ...more, of: String(new FormData(event.target).get("of")).trim() } });
  };
  return html`<form class="pick" key=${`of-${of}`} onSubmit=${show}><label>Environment <input name="of" list="environments" autocomplete="off" defaultValue=${of} maxlength="64" placeholder="all that have no own" /></label><${Environments} /><button type="submit">Show</button></form>
    <p class="note">Up to <em>good</em> a figure is green, above <em>bad</em> red. Where less is worse, as of bitrates and scores, it is green from <em>good</em> on, and red below <em>bad</em>. Of fewer views or viewers than <em>n</em> it is neither, and a share of views is judged only if its 95 % interval lies wholly on one side: 1 failure of 83 is no disaster.</p>
    <label class="pick">Find a metric <input id="find-metric" type="search" autocomplete="off" value=${search.value} onInput=${(/** @type {any} */ event) => { search.value = event.target.value; }} /></label>
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => {
      // A group is of what its metrics are.
      if (!Object.keys(metrics.value).length) return null;
      const groups = judgedGroups(data.thresholds, metricOf, search.value);
      return html`<div id="thresholds">${groups.map((group) => html`<${Group} key=${`${of} ${group.title}`} group=${group} isFound=${search.value.trim() !== ""} set=${set} of=${of} />`)}
        ${!groups.length && html`<p class="empty">No metric has this in its name.</p>`}</div>`;
    }} />`;
}

/**
 * A group of metrics: shown where one of them is coloured already, or somebody looks for one. It stays as it is when the last one is taken back.
 * @param {{group: ReturnType<typeof judgedGroups>[number], isFound: boolean, set: (body: any) => Promise<void>, of: string}} props
 */
function Group({ group, isFound, set, of }) {
  const isOpen = useSignal(group.judged > 0);
  const count = group.thresholds.length;
  return html`<details class="where" open=${isFound || isOpen.value} onToggle=${(/** @type {any} */ event) => { if (!isFound) isOpen.value = event.target.open; }}>
    <summary><b>${capital(group.title)}</b> <span class="note">${group.judged} of ${count} coloured</span></summary>
    ${group.isOfTotals && html`<p class="note">A total grows with its range and audience: a threshold fits one length of range.</p>`}
    <ul class="thresholds">${group.thresholds.map((/** @type {any} */ one) => html`<${One} key=${`${of} ${one.metric}`} one=${one} set=${set} />`)}</ul>
  </details>`;
}
/** How a figure is typed: `per` of the API's unit are one of `name`. @type {Record<string, {per: number, name: string, max?: number}>} */
const TYPED = { fraction: { per: 0.01, name: "%", max: 100 }, ms: { per: 1, name: "ms" }, bps: { per: 1e6, name: "Mbps" }, per_minute: { per: 1, name: "a minute" }, score: { per: 1, name: "of 100", max: 100 } };
/** A share that may be more than all: a picture can be drawn more than twice as large as it is. */
const UNBOUNDED = "upscale_fraction";

/** A metric's form: what is wrong with it stands there. @param {{one: any, set: (body: any) => Promise<void>}} props */
function One({ one, set }) {
  const live = LIVE[one.metric];
  const { unit } = live ?? metricOf(one.metric);
  const { per, name: unitName, max: largest } = TYPED[unit] ?? { per: 1, name: unit };
  const max = one.metric === UNBOUNDED ? undefined : largest;
  const mayEdit = session.value?.permissions.includes("edit") ?? false;
  const title = live?.title ?? capital(metricOf(one.metric).title);
  const [good, bad] = one.worse === "lower" ? ["Good from", "Bad below"] : ["Good to", "Bad above"];
  const problem = useSignal("");
  const send = async (/** @type {any} */ body) => {
    try {
      await set({ metric: one.metric, ...body });
      problem.value = "";
    } catch (error) {
      const { title: wrong, detail } = /** @type {any} */ (error);
      problem.value = `${title}: ${[`${wrong}.`, detail].filter(Boolean).join(" ")}`;
    }
  };
  const shown = (/** @type {number | null} */ value) => (value === null ? "" : String(Number((value / per).toPrecision(6))));
  const save = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    // What is typed has few digits: 0.1 of a hundredth is no 0.0010000000000000002.
    const figure = (/** @type {string} */ name) => Number((Number(given.get(name)) * per).toPrecision(12));
    send({ good: figure("good"), bad: figure("bad"), n: Number(given.get("n")) });
  };
  const isJudged = one.n !== null;
  return html`<li data-metric=${one.metric}><form onSubmit=${save}>
    <b>${title}</b> ${live ? html`<${Meaning} title=${title} term=${live.term} />` : html`<${MetricMeaning} name=${one.metric} />`} <span class="note">${isJudged ? ORIGINS[/** @type {keyof typeof ORIGINS} */ (one.of)] : "not coloured until somebody says what is good"}</span>
    <span class="row">
      <label>${good} (${unitName}) <${Field} name="good" type="number" step="any" min="0" max=${max} value=${shown(one.good)} disabled=${!mayEdit} required /></label>
      <label>${bad} (${unitName}) <${Field} name="bad" type="number" step="any" min="0" max=${max} value=${shown(one.bad)} disabled=${!mayEdit} required /></label>
      <label>From n ${live ? "viewers" : "views"} <${Field} name="n" type="number" min=${viewsMin(one.metric)} max="1000000" value=${isJudged ? String(one.n) : ""} disabled=${!mayEdit} required /></label>
      ${mayEdit && html`<button type="submit" aria-label=${`Save: ${title}`}>Save</button>`}
      ${mayEdit && one.of !== "default" && html`<button type="button" aria-label=${`Back to before: ${title}`} onClick=${() => send({})}>Back to before</button>`}
    </span>
    ${problem.value && html`<p class="notice" role="alert">${problem.value}</p>`}
  </form></li>`;
}
