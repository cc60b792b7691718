// @ts-check
// Ranges of time, and times as clocks of a zone show them. Pure; times are ms since 1970.

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/**
 * Lengths up to now that can be chosen. `step_ms`: a short one ends with the last whole minute; of a long one the hour that runs is
 * the last, so that it is of whole hours: their sums answer at once over any number of views.
 * @type {Record<string, {title: string, ms: number, step_ms: number}>}
 */
export const LENGTHS = {
  "1h": { title: "Last hour", ms: HOUR_MS, step_ms: MINUTE_MS },
  "6h": { title: "Last 6 hours", ms: 6 * HOUR_MS, step_ms: MINUTE_MS },
  "24h": { title: "Last 24 hours", ms: DAY_MS, step_ms: MINUTE_MS },
  "7d": { title: "Last 7 days", ms: 7 * DAY_MS, step_ms: HOUR_MS },
  "30d": { title: "Last 30 days", ms: 30 * DAY_MS, step_ms: HOUR_MS },
  "90d": { title: "Last 90 days", ms: 90 * DAY_MS, step_ms: HOUR_MS },
};

/** The next longer length of a range up to now; null of the longest, and of a range of one's own. @param {string} range */
export function longerThan(range) {
  const names = Object.keys(LENGTHS);
  return range in LENGTHS ? (names[names.indexOf(range) + 1] ?? null) : null;
}

/**
 * The range of a place in ms; null where its texts are no times.
 * @param {{range: string, from: string, to: string, tz: string}} place
 * @param {number} now_ms
 * @returns {{from_ms: number, to_ms: number} | null}
 */
export function resolved(place, now_ms) {
  if (place.range) {
    const { ms, step_ms } = LENGTHS[place.range] ?? LENGTHS["24h"];
    const whole_ms = Math.floor(now_ms / step_ms) * step_ms;
    const to_ms = step_ms === MINUTE_MS ? whole_ms : whole_ms + step_ms;
    return { from_ms: to_ms - ms, to_ms };
  }
  const from_ms = msOf(place.from, place.tz);
  const to_ms = msOf(place.to, place.tz);
  return from_ms === null || to_ms === null || from_ms >= to_ms ? null : { from_ms, to_ms };
}

/** Buckets of a series that can be chosen, by the API's names, with their lengths. @type {Record<string, {title: string, ms: number}>} */
export const BUCKETS = {
  minute: { title: "minute", ms: MINUTE_MS },
  "5minutes": { title: "5 minutes", ms: 5 * MINUTE_MS },
  "15minutes": { title: "15 minutes", ms: 15 * MINUTE_MS },
  hour: { title: "hour", ms: HOUR_MS },
  day: { title: "day", ms: DAY_MS },
  week: { title: "week", ms: 7 * DAY_MS },
};
/** Points of a series, as the API allows. */
export const POINTS_MAX = 2_000;

/** The buckets that divide a range into no more points than the API allows, and into two at least. @param {{from_ms: number, to_ms: number} | null} range */
export const bucketsFor = (range) => Object.keys(BUCKETS).filter((name) => range && BUCKETS[name].ms < range.to_ms - range.from_ms && Math.floor((range.to_ms - range.from_ms) / BUCKETS[name].ms) + 2 <= POINTS_MAX);

/**
 * The range of a place, if it has the moment; otherwise the day around it.
 * @param {{range: string, from: string, to: string, tz: string}} place
 * @param {number} at_ms
 * @param {number} now_ms
 */
export function rangeWith(place, at_ms, now_ms) {
  const { range, from, to } = place;
  const found = resolved(place, now_ms);
  if (found && found.from_ms <= at_ms && at_ms < found.to_ms) return { range, from, to };
  const [begin, end] = wholeMinutes(at_ms - DAY_MS / 2, Math.min(at_ms + DAY_MS / 2, now_ms));
  return { range: "", from: String(begin), to: String(Math.max(end, begin + MINUTE_MS)) };
}

/** How long ago a moment may be that is chosen by a click, in ms, by what the click says. */
const AGO = { "15 min ago": 15 * MINUTE_MS, "1 h ago": HOUR_MS, "6 h ago": 6 * HOUR_MS, "24 h ago": DAY_MS };

/**
 * Moments before now that lie within a place's range, by how long ago they are. In ms: of an hour that comes twice, clocks do not say which.
 * @param {{range: string, from: string, to: string, tz: string}} place
 * @param {number} now_ms
 * @returns {[string, string][]}
 */
export function momentsAgo(place, now_ms) {
  const found = resolved(place, now_ms);
  const all = Object.entries(AGO).map(([title, ms]) => /** @type {[string, number]} */ ([title, Math.floor((now_ms - ms) / MINUTE_MS) * MINUTE_MS]));
  return all.filter(([, at_ms]) => found && found.from_ms < at_ms && at_ms < found.to_ms).map(([title, at_ms]) => [title, String(at_ms)]);
}

/**
 * A stretch that was marked, widened to whole minutes: nothing is counted by less.
 * @param {number} from_ms
 * @param {number} to_ms
 * @returns {[number, number]}
 */
export const wholeMinutes = (from_ms, to_ms) => [Math.floor(from_ms / MINUTE_MS) * MINUTE_MS, Math.ceil(to_ms / MINUTE_MS) * MINUTE_MS];

/** Other ranges that a range is compared with, by how many days of the zone's calendar they are before it. @type {Record<string, {title: string, days: number}>} */
export const COMPARED = {
  previous: { title: "with the range before", days: 0 },
  day: { title: "with the same time a day before", days: 1 },
  week: { title: "with the same time a week before", days: 7 },
};

/**
 * What the API is asked to compare a place's range with: empty, `previous`, or the first ms of a range as long.
 * @param {string} compare - A name of `COMPARED`, a moment, or empty.
 * @param {{range: string, from: string, to: string, tz: string}} place
 * @param {number} now_ms
 */
export function comparedFrom(compare, place, now_ms) {
  const range = resolved(place, now_ms);
  if (compare === "" || compare === "previous" || !range) return compare;
  if (!COMPARED[compare]) return String(msOf(compare, place.tz) ?? "");
  const there_ms = Date.parse(`${localText(range.from_ms, place.tz)}Z`) - COMPARED[compare].days * DAY_MS;
  return String(msOf(new Date(there_ms).toISOString().slice(0, 19), place.tz));
}

/** What is compared with, in words. @param {string} compare - As the address has it. @param {string} tz */
export function comparedText(compare, tz) {
  if (COMPARED[compare]) return COMPARED[compare].title;
  const from_ms = msOf(compare, tz);
  return from_ms === null ? "with nothing" : `with the range from ${momentText(from_ms, tz)}`;
}

/**
 * The range that a place's range is compared with, as the API has it: beside whole days as many, else as long; null without one.
 * @param {string} compare - As the address has it.
 * @param {{range: string, from: string, to: string, tz: string}} place
 * @param {number} now_ms
 * @returns {{from_ms: number, to_ms: number} | null}
 */
export function comparedRange(compare, place, now_ms) {
  const range = resolved(place, now_ms);
  const given = comparedFrom(compare, place, now_ms);
  if (!range || given === "") return null;
  const days = wholeDays(range, place.tz);
  const length_ms = range.to_ms - range.from_ms;
  if (given === "previous") return { from_ms: days ? daysLater(range.from_ms, -days, place.tz) : range.from_ms - length_ms, to_ms: range.from_ms };
  const from_ms = Number(given);
  return { from_ms, to_ms: days && isMidnight(from_ms, place.tz) ? daysLater(from_ms, days, place.tz) : from_ms + length_ms };
}

/** Whether a day begins. @param {number} at_ms @param {string} tz */
const isMidnight = (at_ms, tz) => daysLater(at_ms, 0, tz) === at_ms;

/** Where a day begins so many days later. @param {number} at_ms @param {number} days @param {string} tz */
const daysLater = (at_ms, days, tz) => Number(msOf(new Date(Date.parse(localText(at_ms, tz).slice(0, 10)) + days * DAY_MS).toISOString().slice(0, 10), tz));

/** How many days of the calendar a range is; 0 if it is not whole ones. @param {{from_ms: number, to_ms: number}} range @param {string} tz */
function wholeDays({ from_ms, to_ms }, tz) {
  if (!isMidnight(from_ms, tz) || !isMidnight(to_ms, tz)) return 0;
  const [first, end] = [from_ms, to_ms].map((at_ms) => Date.parse(localText(at_ms, tz).slice(0, 10)));
  return (end - first) / DAY_MS;
}

/**
 * A moment as the zone's clocks show it: 2026-11-24T20:13.
 * @param {number} at_ms
 * @param {string} tz
 */
export function localText(at_ms, tz) {
  const parts = Object.fromEntries(clock(tz).formatToParts(at_ms).map((one) => [one.type, one.value]));
  const text = `${parts.year}-${parts.month}-${parts.day}T${parts.hour}:${parts.minute}`;
  return parts.second === "00" ? text : `${text}:${parts.second}`;
}

/**
 * ms since 1970 of a text: ms themselves, a time with an offset, or what the zone's clocks show. Null for any other text.
 * Of an hour that comes twice, the first is meant.
 * @param {string} text
 * @param {string} tz
 * @returns {number | null}
 */
export function msOf(text, tz) {
  if (/^\d{9,}$/.test(text)) return Number(text);
  const found = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?(Z|[+-]\d\d:\d\d)?$/.exec(text);
  if (!found) return null;
  const asUtc_ms = Date.parse(`${found[1]}T${found[2] ?? "00:00"}${found[3] ?? "Z"}`);
  if (Number.isNaN(asUtc_ms)) return null;
  if (found[3]) return asUtc_ms;
  // The offset a day before and after: where they differ, the one that the clocks then show.
  const offsets = [offset_ms(asUtc_ms - DAY_MS, tz), offset_ms(asUtc_ms + DAY_MS, tz)];
  for (const offset of offsets) if (offset_ms(asUtc_ms - offset, tz) === offset) return asUtc_ms - offset;
  return asUtc_ms - offsets[0];
}

/**
 * How far the zone's clocks are ahead of UTC.
 * @param {number} at_ms
 * @param {string} tz
 */
function offset_ms(at_ms, tz) {
  const whole_ms = Math.floor(at_ms / 1000) * 1000;
  return Date.parse(`${localText(whole_ms, tz)}Z`) - whole_ms;
}

/**
 * The moments at which the zone's clocks show the same as at this one: two of an hour that comes twice.
 * @param {number} at_ms
 * @param {string} tz
 * @returns {number[]} The first one first.
 */
export function sameOnClocks(at_ms, tz) {
  const ahead = offset_ms(at_ms, tz);
  const others = [offset_ms(at_ms - DAY_MS, tz), offset_ms(at_ms + DAY_MS, tz)].filter((other) => other !== ahead);
  const twins = others.map((other) => at_ms + ahead - other).filter((twin_ms) => localText(twin_ms, tz) === localText(at_ms, tz));
  return [...new Set([at_ms, ...twins])].sort((one, other) => one - other);
}

/** How far clocks are ahead of UTC, as times of the API have it: +02:00. @param {number} at_ms @param {string} tz */
export function offsetText(at_ms, tz) {
  const minutes = Math.round(offset_ms(at_ms, tz) / MINUTE_MS);
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60].map((one) => String(one).padStart(2, "0"));
  return `${minutes < 0 ? "-" : "+"}${hours}:${rest}`;
}

/** A moment as an address has it: what clocks show, with the offset where they show it twice. @param {number} at_ms @param {string} tz */
export const placeText = (at_ms, tz) => `${localText(at_ms, tz)}${sameOnClocks(at_ms, tz).length > 1 ? offsetText(at_ms, tz) : ""}`;

/** @type {Map<string, Intl.DateTimeFormat>} */
const formats = new Map();

/** To make one takes as long as to write a hundred times with it. @param {string} tz @param {Intl.DateTimeFormatOptions} how */
function format(tz, how) {
  const key = JSON.stringify([tz, how]);
  let found = formats.get(key);
  if (!found) formats.set(key, (found = new Intl.DateTimeFormat("en-GB", { timeZone: tz, hourCycle: "h23", ...how })));
  return found;
}

/** @param {string} tz */
const clock = (tz) => format(tz, { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" });

/**
 * A moment for people: 24 Nov, 20:13; with `seconds` also those. Of an hour that comes twice it has the offset: 1 Nov, 01:15 (UTC-05:00).
 * @param {number} at_ms
 * @param {string} tz
 * @param {{seconds?: boolean, year?: boolean}} [how]
 */
export function momentText(at_ms, tz, how = {}) {
  const text = format(tz, {
    day: "numeric",
    month: "short",
    year: how.year ? "numeric" : undefined,
    hour: "2-digit",
    minute: "2-digit",
    second: how.seconds ? "2-digit" : undefined,
  }).format(at_ms);
  return sameOnClocks(at_ms, tz).length > 1 ? `${text} (UTC${offsetText(at_ms, tz)})` : text;
}

/**
 * The range as words, and with which length it is compared.
 * @param {{from_ms: number, to_ms: number}} range
 * @param {string} tz
 */
export function rangeText(range, tz) {
  return `${momentText(range.from_ms, tz)} – ${momentText(range.to_ms, tz)}`;
}

/**
 * A tick of an axis: a clock where ticks are less than a day apart, with the day under the first tick and each midnight.
 * @param {number} at_ms
 * @param {string} tz
 * @param {number} step_s - Between two ticks.
 * @param {boolean} isFirst
 */
export function tickText(at_ms, tz, step_s, isFirst) {
  const [day, time] = localText(at_ms, tz).split("T");
  const words = format(tz, { day: "numeric", month: "short" }).format(at_ms);
  if (step_s * 1_000 >= DAY_MS) return isFirst ? `${words}\n${day.slice(0, 4)}` : words;
  return isFirst || time === "00:00" ? `${time}\n${words}` : time;
}
