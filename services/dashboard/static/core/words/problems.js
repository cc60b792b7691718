// @ts-check
// What an answer that is a problem (RFC 9457) says to people. Pure.

import { SEARCHED } from "./view_fields.js";

/** `way`: what of the place is wrong, which names the way on; empty where nothing of it is. `retry_ms`: from when on the server says that it may be asked. @typedef {{title: string, detail: string, status: number, way?: Way, retry_ms?: number}} Problem */
/** @typedef {"" | "range" | "customer" | "filters" | "metrics" | "by" | "compare" | string} Way */

/** Titles that only name the status: what is wrong is in the detail. */
const PHRASES = new Set(["Bad Request", "Unauthorized", "Forbidden", "Not Found", "Conflict", "Misdirected Request", "Too Many Requests", "Service Unavailable"]);
/** What the server says of every fault of a question. */
const WRONG = "The question is wrong";
/** Answers of the same question for the same reason: asking again changes nothing. */
const REFUSALS = [400, 403, 404, 422];

/** Whether it is the question that is refused, and not the server that is away. @param {Problem} problem */
export const isRefusal = ({ status }) => REFUSALS.includes(status);

/**
 * @param {any} content - Of the answer.
 * @param {number} status
 * @returns {Problem}
 */
export function problemOf(content, status) {
  const { title, detail = "" } = content;
  const fault = content.errors?.[0];
  const named = fault ? [fault.parameter, fault.detail].filter(Boolean).join(": ") : "";
  if (title === WRONG && fault) return worded(fault, status);
  if (!title) return { title: detail || "The question is refused", detail: "", status };
  if (/no such customer/i.test(`${title} ${detail}`)) return { title: "There is no such customer", detail: "It does not exist, or you may not see it.", status, way: "customer" };
  if (PHRASES.has(title) && detail) return { title: capital(detail), detail: named, status };
  return { title, detail: [detail, named].filter(Boolean).join(" "), status };
}

/** What a fault of one parameter is for who reads it in an address or has typed it. @param {{parameter?: string, detail: string}} fault @param {number} status @returns {Problem} */
function worded({ parameter = "", detail }, status) {
  const said = plain(detail);
  if (parameter === "from" && said.startsWith("before")) return { title: "The range ends before it begins", detail: "Choose an earlier beginning or a later end.", status, way: "range" };
  if (parameter === "from" || parameter === "to") return { title: said.startsWith("a range has") ? capital(said) : "The range has a beginning or an end that is no time", detail: "Choose another range.", status, way: "range" };
  const searched = SEARCHED.find((one) => one.name === parameter);
  if (searched) return { title: `“${searched.title}” is ${searched.type === "number" ? "no number" : "nothing that can be searched for"}`, detail: "Type it again.", status, way: parameter };
  if (parameter === "customer") return { title: "The address names no customer", detail: "", status, way: "customer" };
  if (parameter === "filter") return { title: "A filter cannot be used", detail: `${capital(said)}.`, status, way: "filters" };
  if (parameter === "metrics" || parameter === "metric") return { title: capital(said), detail: "Choose one from the list.", status, way: "metrics" };
  if (parameter === "by") return { title: capital(said), detail: "Choose one from the list.", status, way: "by" };
  if (parameter === "since") return { title: "“New since” is not within the range", detail: "Choose a later moment, or a longer range.", status, way: parameter };
  if (parameter === "tz") return { title: "The time zone cannot be used", detail: "Choose one from the list.", status, way: "tz" };
  if (parameter === "compare") return { title: "The range that is compared with cannot be used", detail: "Choose another one.", status, way: "compare" };
  return { title: "The address asks for something that has no answer", detail: `${[parameter, said].filter(Boolean).join(": ")}.`, status };
}

/** Without what only programs read: where the API lists what there is, and quotes of code. @param {string} detail */
const plain = (detail) => detail.replace(/: see \/v1\/\S+$/, "").replaceAll("`", "").replaceAll("'", "");

/** @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
