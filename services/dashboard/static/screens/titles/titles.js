// @ts-check
// Titles: videos by audience and quality; and one of them over time: how many watched, which parts, and how well.

import { rangeOf } from "../../core/figures/behind.js";
import { narrowed } from "../../core/place/filters.js";
import { changeText, countText, durationText, NONE } from "../../core/words/format.js";
import { momentText } from "../../core/place/ranges.js";
import { titleOf, viewsAt } from "../../core/answers/audience.js";
import { linesOf } from "../../core/answers/series.js";
import { addressFor, Answered, useFetched, useQuestion } from "../../parts/data/asking.js";
import { Chart } from "../../parts/drawing/chart.js";
import { Compare } from "../../parts/narrowing/compare.js";
import { Controls } from "../../parts/narrowing/controls.js";
import { Export } from "../../parts/exporting.js";
import { ViewsMin } from "../../parts/narrowing/views_min.js";
import { Facts } from "../../parts/figures/facts.js";
import { Figure } from "../../parts/figures/figure.js";
import { MetricMeaning, MetricName } from "../../parts/figures/glossary.js";
import { html } from "../../parts/html.js";
import { Label } from "../../parts/figures/label.js";
import { capital, metricOf } from "../../parts/data/known.js";
import { Pages, pagesKey } from "../../parts/data/pages.js";
import { go, Link, place } from "../../parts/place.js";
import { MixedClients } from "../../parts/notable/clients.js";
import { classOf } from "../../parts/notable/thresholds.js";
import { SortHead, sortBy } from "../../parts/inputs/sorting.js";
import { LiveViewers } from "./live.js";
import { Retention } from "./retention.js";
import { AtATime, DrawnBox, OpenMissing, Together, useTogether } from "./together.js";

const METRICS = ["viewers", "views", "watch_ms", "rebuffer_fraction", "startup_ms_p50"];
/** Titles of a page, and the most that the API has on one. */
const LISTED = 20;
const LISTED_MAX = 200;
/** Of one title: drawn over time, and the figures of the whole range. */
const QUALITY = ["rebuffer_fraction", "startup_ms_p50", "playback_failure_fraction", "exit_before_start_fraction", "bitrate_bps"];
const FIGURES = ["viewers", ...QUALITY, "experience_score"];
/** Where its views, figures and errors are looked at. */
const LINKS = { views: "its views", explore: "Explore its figures", errors: "its errors" };

export default function Titles() {
  const { more } = place.value;
  return html`<${Controls} />${more.video ? html`<${Title} video=${more.video} />` : html`<${List} />`}`;
}

function List() {
  const { more } = place.value;
  const { sort = "viewers", order = "", views_min = "", compare = "" } = more;
  const params = { order_by: sort || "viewers", order, compare, views_min, limit: Math.min(LISTED_MAX, Number(more.rows) || LISTED) };
  const found = useQuestion("/v1/titles", place.value, params, 30_000);
  const together = useTogether();
  const sorted = { by: sort || "viewers", isAscending: order === "ascending" };
  const head = (/** @type {string} */ name) => html`<${SortHead} name=${name} title=${capital(metricOf(name).title)} sort=${sorted} sortBy=${sortBy}><${MetricMeaning} name=${name} /><//>`;
  return html`
    <div class="controls" role="region" aria-label="What is shown">
      <${Compare} value=${compare} />
      <${ViewsMin} />
      <${Export} of="titles" params=${{ order_by: sort || "viewers", order, compare, views_min }} what="the titles of the table, and those of further pages" />
    </div>
    <${Together} curves=${together} />
    <section aria-labelledby="titles-title"><h2 id="titles-title">Titles</h2>
      <${Answered} of=${found} height=${360} draw=${(/** @type {any} */ data) => html`
        <${Pages} key=${pagesKey(params)} newest=${data} path="/v1/titles" params=${params} what="titles" draw=${(/** @type {any[]} */ pages) => html`
          <div class="scroll" tabindex="0" role="region" aria-label="Titles">
            <table id="titles"><thead><tr><th scope="col">Title</th>${METRICS.map(head)}${compare && html`<th scope="col">Rebuffering before <${MetricMeaning} name="rebuffer_fraction" /></th><th scope="col">Change</th>`}</tr></thead>
              <tbody>${pages.flatMap((page) => page.titles.map((/** @type {any} */ one) => html`<${Row} key=${one.video_id} one=${one} compared=${compare ? page.compared?.range : null} together=${together} />`))}
                ${!data.titles.length && html`<tr><td class="empty" colspan="8">No view of a video with an id in this range.</td></tr>`}</tbody></table>
          </div>
          <${Rest} pages=${pages} />`} />`} />
    </section>`;
}

/** What the table leaves out: the first page says what all others have. @param {{pages: any[]}} props */
function Rest({ pages }) {
  const [{ other, unknown }, ...later] = pages;
  const listed = later.flatMap((page) => page.titles);
  const left = other && other.groups - listed.length;
  const views = other && other.n - listed.reduce((sum, one) => sum + one.n, 0);
  const words = [left > 0 && `${countText(left)} more titles have ${countText(views)} views.`, unknown && `${countText(unknown.n)} views name no video.`].filter(Boolean).join(" ");
  return words && html`<p class="note" id="rest">${words}</p>`;
}

/** What figures of a title are of, under the filters of this place too. @param {string} video */
const ofTitle = (video) => ({ filters: narrowed(place.value.filters, "video_id", video), more: {} });

/** @param {{one: any, compared: {from_ms: number, to_ms: number} | null, together: import("./together.js").Curves}} props - `compared`: the range that it is compared with. */
function Row({ one, compared, together }) {
  const before = one.compared?.rebuffer_fraction;
  const within = { customer: place.value.customer, filters: ofTitle(one.video_id).filters };
  return html`<tr>
    <th scope="row"><${DrawnBox} curves=${together} video=${one.video_id} title=${titleOf(one)} /><${Link} to=${{ more: { video: one.video_id } }}><${Label} text=${titleOf(one)} /><//></th>
    ${METRICS.map((name) => {
      const figure = one.metrics[name];
      return html`<td class=${classOf(name, figure)}><${Figure} metric=${name} figure=${figure} within=${within} hasN=${figure && figure.n !== one.n} /></td>`;
    })}
    ${compared && html`<td><${Figure} metric="rebuffer_fraction" figure=${before} within=${{ ...within, ...rangeOf(compared) }} /></td>
      <td>${changeText("fraction", one.metrics.rebuffer_fraction?.value, before?.value) ?? NONE}</td>`}
  </tr>`;
}

/** @param {{video: string}} props */
function Title({ video }) {
  const { customer, range, from, to, tz, filters } = place.value;
  const path = `/v1/titles/${encodeURIComponent(video)}`;
  const key = JSON.stringify([path, customer, range, from, to, tz, filters]);
  const found = useFetched(key, () => addressFor(path, place.value, { metrics: FIGURES.join(",") }), 30_000);
  return html`<section aria-labelledby="title-name">
    <p><${Link} to=${{ more: { video: "" } }}>All titles<//></p>
    <${Answered} of=${found} height=${520} draw=${(/** @type {any} */ data) => html`<${Drawn} data=${data} />`} />
  </section>`;
}

/** @param {{data: any}} props */
function Drawn({ data }) {
  const { tz, filters } = place.value;
  const times = data.concurrency.map((/** @type {any} */ one) => one.at_ms / 1_000);
  const audience = { title: "Viewers", kind: "value", key: [], values: data.concurrency.map((/** @type {any} */ one) => one.views), counts: [] };
  const of = ofTitle(data.video_id);
  const zoom = (/** @type {number} */ a, /** @type {number} */ b) => go({ from: String(a), to: String(b), range: "" });
  return html`
    <h2 id="title-name">${titleOf(data)}${data.stream_type ? html` <span class="tag">${data.stream_type}</span>` : ""}</h2>
    <p class="note">${[data.series, data.duration_ms ? durationText(data.duration_ms) : "", `n ${countText(data.n)} views`].filter(Boolean).join(" · ")}<span id="title-links"> · ${Object.entries(LINKS).map(([screen, text], at) => html`${at > 0 && " · "}<${Link} to=${{ ...of, screen }}>${text}<//>`)}</span></p>
    <h3><${AtATime} />${data.peak && html` <span class="note" id="title-peak">most <${Link} to=${viewsAt(data.peak.at_ms, of, data.about.range)} title="the views that were open then">${countText(data.peak.views)}<//> at ${momentText(data.peak.at_ms, tz)}</span>`}</h3>
    <${Chart} times=${times} lines=${[audience]} unit="viewers" tz=${tz} title="Viewers at a time" hasCounts=${false} zoom=${zoom} range=${data.about.range} />
    <${OpenMissing} range=${data.about.range}>${data.title && html`<${Link} to=${{ screen: "", filters: narrowed(filters, "video_title", data.title), more: {} }}>Its viewers now<//>`}<//>
    <${LiveViewers} titles=${[{ title: titleOf(data), name: data.title }]} />
    <h3>Quality</h3>
    <${Facts} id="title-figures" names=${FIGURES} metrics=${data.metrics} of=${of} />
    <${MixedClients} metrics=${FIGURES} within=${{ ...place.value, ...of }} />
    ${QUALITY.map((name) => {
      const { times: at, lines } = linesOf({ points: data.quality }, name, capital(metricOf(name).title));
      const named = lines.map((line) => ({ ...line, name: html`<${MetricName} name=${name} />` }));
      return html`<${Chart} key=${name} times=${at} lines=${named} unit=${metricOf(name).unit} tz=${tz} title=${capital(metricOf(name).title)} height=${150} zoom=${zoom} range=${data.about.range} />`;
    })}
    <${Retention} of=${data.retention} within=${{ customer: place.value.customer, filters: of.filters }} />`;
}
