// @ts-check
// Settings, thresholds: from which figure on the page shows a metric as good or bad, for all environments or for one.

import { useSignal } from "@preact/signals";
import { capital, metricOf } from "../../parts/data/known.js";
import { Answered, useFetched } from "../../parts/data/asking.js";
import { Field } from "../../parts/field.js";
import { Meaning, MetricMeaning } from "../../parts/glossary.js";
import { html } from "../../parts/html.js";
import { go, place } from "../../parts/place.js";
import { change, session } from "../../parts/data/session.js";
import { askThresholds } from "../../parts/notable/thresholds.js";
import { Environments } from "./lists.js";

const ORIGINS = { customer: "this environment's", organisation: "all environments'", default: "as installed" };

export default function Thresholds() {
  const version = useSignal(0);
  const problem = useSignal("");
  const { more } = place.value;
  const of = more.of ?? "";
  const found = useFetched(`thresholds ${of}`, () => `/v1/thresholds?${new URLSearchParams({ customer: of })}`, 0, version.value);
  const set = async (/** @type {any} */ body) => {
    try {
      await change("PATCH", "/v1/thresholds", { ...body, customer: of });
      problem.value = "";
      version.value += 1;
      askThresholds(place.value.customer);
    } catch (error) {
      const { title, detail } = /** @type {any} */ (error);
      problem.value = `${title}. ${detail}`;
    }
  };
  const show = (/** @type {any} */ event) => {
    event.preventDefault();
    go({ more: { ...more, of: String(new FormData(event.target).get("of")).trim() } });
  };
  return html`<form class="pick" key=${`of-${of}`} onSubmit=${show}><label>Environment <input name="of" list="environments" autocomplete="off" defaultValue=${of} maxlength="64" placeholder="all that have no own" /></label><${Environments} /><button type="submit">Show</button></form>
    <p class="note">Up to <em>good</em> a figure is green, above <em>bad</em> red. Of fewer views than <em>n</em> it is neither, and a share of views is judged only if its 95 % interval lies wholly on one side: 1 failure of 83 is no disaster.</p>
    ${problem.value && html`<p class="notice" role="alert">${problem.value}</p>`}
    <${Answered} of=${found} draw=${(/** @type {any} */ data) => html`<ul class="thresholds" id="thresholds">${data.thresholds.map((/** @type {any} */ one) => html`<${One} key=${`${of} ${one.metric}`} one=${one} set=${set} />`)}</ul>`} />`;
}

/** Shares in %, times in ms. @param {{one: any, set: (body: any) => void}} props */
function One({ one, set }) {
  const isShare = one.metric.endsWith("_fraction");
  const scale = isShare ? 100 : 1;
  const mayEdit = session.value?.permissions.includes("edit") ?? false;
  const isLive = one.metric === "live_rebuffering_fraction";
  const title = isLive ? "Viewers of this moment that rebuffer" : capital(metricOf(one.metric).title);
  const shown = (/** @type {number} */ value) => String(Number((value * scale).toPrecision(6)));
  const save = (/** @type {any} */ event) => {
    event.preventDefault();
    const given = new FormData(event.target);
    const [good, bad] = ["good", "bad"].map((name) => Number(given.get(name)) / scale);
    set({ metric: one.metric, good, bad, n: Number(given.get("n")) });
  };
  const unit = isShare ? "%" : "ms";
  return html`<li data-metric=${one.metric}><form onSubmit=${save}>
    <b>${title}</b> ${isLive ? html`<${Meaning} title=${title} term="live rebuffering" />` : html`<${MetricMeaning} name=${one.metric} />`} <span class="note">${ORIGINS[/** @type {keyof typeof ORIGINS} */ (one.of)]}</span>
    <span class="row">
      <label>Good to (${unit}) <${Field} name="good" type="number" step="any" min="0" max=${isShare ? 100 : undefined} value=${shown(one.good)} disabled=${!mayEdit} required /></label>
      <label>Bad above (${unit}) <${Field} name="bad" type="number" step="any" min="0" max=${isShare ? 100 : undefined} value=${shown(one.bad)} disabled=${!mayEdit} required /></label>
      <label>From n views <${Field} name="n" type="number" min="1" max="1000000" value=${String(one.n)} disabled=${!mayEdit} required /></label>
      ${mayEdit && html`<button type="submit" aria-label=${`Save: ${title}`}>Save</button>`}
      ${mayEdit && one.of !== "default" && html`<button type="button" aria-label=${`Back to before: ${title}`} onClick=${() => set({ metric: one.metric })}>Back to before</button>`}
    </span>
  </form></li>`;
}
