// @ts-check
// Now: viewers and their experience as it is, by every live dimension; what has finished in the last hour; who is suspected.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { liveParts, OTHER, pastOf } from "../../core/place/filters.js";
import { ageText, countText, NONE, valueText } from "../../core/words/format.js";
import { hiddenText, isShown } from "../../core/figures/figures.js";
import { BACK, customersAsked, joined, spanOf, stretchOf, TILES, valuesOf, withSteps } from "../../core/live/live.js";
import { isUnknown } from "../../core/live/slices.js";
import { liveTitle, viewsOfLive } from "../../core/live/views.js";
import { MINUTE_MS, rangeText } from "../../core/place/ranges.js";
import { First, isNew } from "../../parts/arriving/first.js";
import { Answered, presentNow_ms, Skeleton, useFetched, useQuestion } from "../../parts/data/asking.js";
import { Chart } from "../../parts/drawing/chart.js";
import { MixedClients } from "../../parts/notable/clients.js";
import { Controls } from "../../parts/narrowing/controls.js";
import { Facts } from "../../parts/figures/facts.js";
import { Freshness } from "../../parts/narrowing/freshness.js";
import { Term } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { RecentIncidents } from "../../parts/notable/incidents.js";
import { metricOf, seen } from "../../parts/data/known.js";
import { Spark, Status, useLive } from "../../parts/data/live_picture.js";
import { go, Link, place } from "../../parts/place.js";
import { classOfLive } from "../../parts/notable/thresholds.js";
import { AllSuspects } from "../../parts/notable/suspects.js";
import { later } from "../../parts/later.js";
import { Slices, SlicesNote, wordsOf } from "./slices.js";

const FINISHED = ["rebuffer_fraction", "startup_ms_p50", "startup_ms_p95", "playback_failure_fraction", "exit_before_start_fraction", "bitrate_bps"];

const Customers = later(() => import("./customers.js"), 300);

export default function Now() {
  const { customer, filters, more } = place.value;
  const { part, parts, take } = usePart();
  const slice = part?.slice ?? "";
  const finished = useQuestion("/v1/overall", lastHour(), { metrics: FINISHED.join(","), compare: "previous" }, 10_000);
  const { picture, level, notice, text } = useLive(customer, slice, customer === "*" ? customersAsked(more) : {});
  useEffect(() => take(picture), [picture]);
  // The first figures are painted before the cards, which take longer to draw.
  const hasPainted = useSignal(false);
  useEffect(() => {
    if (picture) hasPainted.value = true;
  }, [Boolean(picture)]);
  if (picture) seen(picture.customers.map((/** @type {any} */ one) => one.customer));
  // Rules may be firing of one whose beacons stopped longer ago.
  const recent = html`<${RecentIncidents} picture=${level === "good" ? picture : null} />`;
  if (isNew(picture, finished)) return html`<${Controls} hasRange=${false} />
    ${recent}
    <section aria-labelledby="now-title"><div class="section-head"><h2 id="now-title">Now</h2><${Status} level=${level} text=${text} /></div>
      <p class="notice" id="never-sent" role="status">No beacon of yours was counted in the last 30 days. As soon as a player sends some, its viewers show here.</p></section>
    <${First} />`;
  return html`
    <${Controls} hasRange=${false} />
    ${recent}
    <section aria-labelledby="now-title">
      <div class="section-head"><h2 id="now-title">Now</h2><${Status} level=${level} text=${text} />${picture?.from_ms && html`<p class="note">Counts are of the last ${ageText(spanOf(picture))}.</p>`}</div>
      ${notice && html`<p class="notice" id="live-notice" role="status">${notice}${picture?.state === "waiting" && html` <${Link} to=${{ screen: "integration" }}>Connect your player<//>`}</p>`}
      ${picture && filters.length > (part?.filters.length ?? 0) && html`<${LiveOf} part=${part} parts=${parts} />`}
      ${picture?.slice && html`<${SlicesNote} id="live-as-of" picture=${picture} />`}
      ${picture ? html`<${Live} picture=${picture} chosen=${more.tile || "viewers"} isOld=${level !== "good"} slice=${slice} of=${part?.filters ?? []} />` : level !== "refused" && html`<${Skeleton} height=${330} />`}
    </section>
    <${AllSuspects} within=${lastHour()} isDue=${Boolean(finished.data || finished.problem)} />
    <${Finished} found=${finished} />
    ${picture && !picture.slices && html`<${SlicesNote} picture=${picture} />`}
    ${hasPainted.value && picture?.slices && html`<${Slices} picture=${picture} />`}
    ${hasPainted.value && customer === "*" && picture && picture.customers_total > 1 && html`<${Customers} picture=${picture} />`}`;
}

/** Which of the filters live figures are of, of which they can be, and what a picture says of the dimensions that are counted. */
function usePart() {
  const { customer, filters, more } = place.value;
  const known = useSignal({ customer, dimensions: /** @type {string[] | null} */ (null) });
  const take = (/** @type {any} */ picture) => {
    // Where nobody is watching, or nothing was added up yet, nothing says by what viewers are counted.
    const dimensions = Object.keys(picture?.slices ?? {});
    if (picture?.customer === customer && dimensions.length) known.value = { customer, dimensions };
  };
  const parts = liveParts(filters, known.value.customer === customer ? known.value.dimensions : null);
  return { parts, part: parts.find((one) => one.slice === more.live) ?? parts[0] ?? null, take };
}

/** Says of whom the live figures are where that is not all filters. @param {{part: import("../../core/place/filters.js").LivePart | null, parts: import("../../core/place/filters.js").LivePart[]}} props */
function LiveOf({ part, parts }) {
  if (!part) return html`<p class="notice" id="live-of" role="status">Live figures are of <b>all viewers</b>: none of these filters names one value of a dimension that is counted live.</p>`;
  const out = place.value.filters.filter((text) => !part.filters.includes(text));
  return html`<div class="notice" id="live-of">
    ${parts.length > 1 ? html`<label class="pick">Live figures are of <select id="live-part" value=${part.slice} onChange=${(/** @type {any} */ e) => go({ more: { live: e.target.value } })}>
      ${parts.map((one) => html`<option value=${one.slice}>${wordsOf(one.filters)}</option>`)}</select></label>` : html`Live figures are of <b>${wordsOf(part.filters)}</b>.`}
    <span role="status"> Viewers of this moment are counted by two dimensions at most. Left out: <b>${wordsOf(out)}</b>.</span>
  </div>`;
}

/** @param {{picture: any, chosen: string, isOld: boolean, slice: string, of: string[]}} props - `of`: the filters of which the figures are. */
function Live({ picture, chosen, isOld, slice, of }) {
  const span_ms = spanOf(picture);
  const tile = TILES.find((one) => one.name === chosen) ?? TILES[0];
  const isEmpty = span_ms === 0;
  const asked = place.value.more.back ?? "";
  const back = BACK[asked] ? asked : isEmpty ? "1h" : "";
  return html`<div class=${isOld ? "is-old" : ""}>
    ${isEmpty && picture.state !== "waiting" && !isUnknown(picture) && html`<p class="notice" id="not-counted" role="status">No viewer was counted here in the last minutes. ${!slice && html`<${Link} to=${{ screen: "integration" }}>Connect your player<//>`}</p>`}
    ${picture.others_now > 0 && html`<p class="note" id="others-now">Values with few viewers are counted without a name: up to ${countText(picture.others_now)} more viewers may belong here.</p>`}
    ${!isEmpty && html`<div class="tiles" id="tiles">
      ${TILES.map((one) => html`<${Tile} key=${one.name} tile=${one} picture=${picture} span_ms=${span_ms} isChosen=${one === tile} of=${of} />`)}
    </div>`}
    <span class="forms" id="back" role="group" aria-label="How far back">
      ${Object.entries({ ...(isEmpty ? {} : { "": { title: ageText(span_ms) } }), ...BACK }).map(([name, { title }]) => html`<button type="button" aria-pressed=${name === back} onClick=${() => go({ more: { back: name, until: "" } }, { replace: true })}>${title}</button>`)}
    </span>
    ${back ? html`<${Earlier} tile=${tile} picture=${picture} slice=${slice} back=${back} />` : html`<${Drawn} tile=${tile} found=${joined(tile, { from_ms: 0, step_ms: picture.bucket_ms, values: [] }, picture, "")} title=${`the last ${ageText(span_ms)} ${picture.bucket_ms < MINUTE_MS ? "by 5 s" : "by minute"}`} />`}
  </div>`;
}

/** The chart with what was landed of earlier. @param {{tile: import("../../core/live/live.js").Tile, picture: any, slice: string, back: string}} props */
function Earlier({ tile, picture, slice, back }) {
  const { customer, more: { until } } = place.value;
  const [dimension, value] = pastOf(slice);
  // What is added up by minute goes on what is by minute too.
  const stretchNow = () => withSteps(stretchOf(back, until, presentNow_ms()), picture.bucket_ms);
  const asked = () => {
    const { from_ms, until_ms, step_ms } = stretchNow();
    return `/v1/live/history?${new URLSearchParams({ customer, dimension, value: value === OTHER ? "" : value, step_ms: String(step_ms), fields: [...new Set(["viewers_now", ...tile.fields])].join(","), from_ms: String(from_ms), until_ms: String(until_ms) })}`;
  };
  const found = useFetched(JSON.stringify(["history", customer, slice, tile.name, back, until, picture.bucket_ms]), asked, until ? 0 : 30_000);
  const { isEarlier, step_ms, ...stretch } = stretchNow();
  const when = isEarlier ? rangeText({ from_ms: stretch.from_ms, to_ms: stretch.until_ms }, place.value.tz) : `the last ${BACK[back].title}`;
  const steps = step_ms < MINUTE_MS ? "by 5 s" : tile.isCount || isEarlier || picture.bucket_ms >= MINUTE_MS ? "by minute" : "by 5 s near now and by minute before";
  const live = isEarlier ? { ...picture, from_ms: null, series: {} } : picture;
  return html`<${Steps} back=${back} stretch=${stretch} isEarlier=${isEarlier} /><${Answered} of=${found} height=${190} draw=${(/** @type {any} */ past) => !past.values.length && !live.series.viewers_now?.length ? html`<p class="empty">No viewer was counted in this time.</p>` : html`
    ${slice && !past.values.some((/** @type {any} */ one) => one.value === value) && html`<p class="note">It was not among those with the most viewers: only the last minutes are known.</p>`}
    <${Drawn} tile=${tile} found=${joined(tile, past, live, value)} title=${`${when} ${steps}`} />`} />`;
}

/** The stretch before and after: so each hour of a day can be seen by 5 s. @param {{back: string, stretch: {from_ms: number, until_ms: number}, isEarlier: boolean}} props */
function Steps({ back, stretch, isEarlier }) {
  const { ms, title } = BACK[back];
  const to = (/** @type {number} */ until_ms) => go({ more: { back, until: until_ms > presentNow_ms() ? "" : String(until_ms) } }, { replace: true });
  return html`<span class="forms" id="back-steps" role="group" aria-label="Which time">
    <button type="button" onClick=${() => to(stretch.from_ms)}>← ${title} earlier</button>
    <button type="button" disabled=${!isEarlier} onClick=${() => to(stretch.until_ms + ms)}>${title} later →</button>
    <button type="button" disabled=${!isEarlier} onClick=${() => to(Infinity)}>up to now</button>
  </span>`;
}

/** What Explore draws of a tile that has no metric of views itself. @type {Record<string, string>} */
const EXPLORED = { rebuffering: "rebuffer_fraction", bitrate: "bitrate_bps" };

/** A stretch that is marked is looked at in Explore. @param {{tile: import("../../core/live/live.js").Tile, found: ReturnType<typeof joined>, title: string}} props */
function Drawn({ tile, found, title }) {
  const zoom = (/** @type {number} */ from, /** @type {number} */ to) => go({ screen: "explore", from: String(from), to: String(to), range: "", more: { metrics: tile.metric ?? EXPLORED[tile.name] ?? "views" } });
  return html`<${Chart} times=${found.times} lines=${[{ title: tile.title, kind: "value", key: [], values: found.values, counts: found.counts }]} unit=${tile.unit} tz=${place.value.tz} height=${190}
    title=${`${tile.title}, ${title}`} hasCounts=${Boolean(tile.n)} zoom=${zoom} />`;
}

/** @param {{tile: import("../../core/live/live.js").Tile, picture: any, span_ms: number, isChosen: boolean, of: string[]}} props */
function Tile({ tile, picture, span_ms, isChosen, of }) {
  const figures = tile.isCount ? picture.totals : picture.now;
  const value = figures && Object.keys(figures).length ? tile.of(figures) : null;
  const aside = (figures ? tile.aside(figures) : "") || (tile.isCount ? `in ${ageText(span_ms)}` : "");
  return html`<article class="tile" id=${`tile-${tile.name}`} data-chosen=${isChosen}>
    <h3><${Term} title=${tile.title} term=${tile.term} /></h3>
    <button type="button" class="pick-tile" aria-pressed=${isChosen} onClick=${() => go({ more: { tile: tile.name } }, { replace: true })}>
      <span class="unseen">Draw ${tile.title}: </span><span class=${`value ${classOfLive(tile.name, figures)}`}>${valueText(tile.unit, value)}</span>
      <span class="aside">${aside || "\u00a0"}</span>
      <${Spark} values=${valuesOf(tile, picture.series)} />
    </button>
    <${Link} class="behind" title=${liveTitle(tile, span_ms)} to=${viewsOfLive(tile, { customer: place.value.customer, filters: of })}>${tile.isCount ? "views of the last hour" : "open views"}<span class="unseen"> behind ${tile.title}</span><//>
  </article>`;
}

const LAST_HOUR = { range: "1h", from: "", to: "" };
const lastHour = () => ({ ...place.value, ...LAST_HOUR });

/** What has finished in the last hour, under all filters. @param {{found: import("../../parts/data/asking.js").Answer}} props */
function Finished({ found }) {
  return html`<section aria-labelledby="finished-title">
    <div class="section-head"><h2 id="finished-title">Views that finished in the last hour</h2></div>
    <${Freshness} isNow />
    <${Answered} of=${found} height=${92} draw=${(/** @type {any} */ data) => html`
      <${Facts} id="finished" names=${FINISHED} metrics=${data.metrics} of=${LAST_HOUR} aside=${(/** @type {string} */ name) => beforeText(name, data.compared?.metrics[name])} />`} />
    <${MixedClients} metrics=${FINISHED} within=${lastHour()} />
  </section>`;
}

/** A figure of the hour before. @param {string} name @param {any} before */
function beforeText(name, before) {
  if (before?.n === 0) return "no views in the hour before";
  const was = before && isShown(name, before) ? valueText(metricOf(name).unit, before.value) : hiddenText(name, before) || NONE;
  return `hour before ${was}${before ? `, n ${countText(before.n)}` : ""}`;
}
