// @ts-check
// What an answer that is a problem (RFC 9457) says to people. Pure.

/** @typedef {{title: string, detail: string, status: number}} Problem */

/** Titles that only name the status: what is wrong is in the detail. */
const PHRASES = new Set(["Bad Request", "Unauthorized", "Forbidden", "Not Found", "Conflict", "Misdirected Request", "Too Many Requests", "Service Unavailable"]);

/**
 * @param {any} content - Of the answer.
 * @param {number} status
 * @returns {Problem}
 */
export function problemOf(content, status) {
  const { title, detail = "" } = content;
  const fault = content.errors?.[0];
  const named = fault ? [fault.parameter, fault.detail].filter(Boolean).join(": ") : "";
  if (!title) return { title: detail || "The question is refused", detail: "", status };
  if (PHRASES.has(title) && detail) return { title: detail.charAt(0).toUpperCase() + detail.slice(1), detail: named, status };
  return { title, detail: [detail, named].filter(Boolean).join(" "), status };
}
