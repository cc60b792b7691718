// @ts-check
// What is read by a click, such as what beacons say of a view: each look at them is noted.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { fetchJson } from "./asking.js";

/** @typedef {import("../../core/words/problems.js").Problem} Problem */

/**
 * @template T
 * @typedef {{read: T | null, isReading: boolean, problem: Problem | null, ask: (isMore?: boolean) => void}} Reading
 */

/**
 * What was read at an address; with `isMore` the next page, which `joined` adds to those before.
 * @template T
 * @param {string} address
 * @param {(before: T | null, page: T) => T} [joined]
 * @returns {Reading<T>}
 */
export function useReading(address, joined = (_, page) => page) {
  const read = useSignal(/** @type {T | null} */ (null));
  const isReading = useSignal(false);
  const problem = useSignal(/** @type {Problem | null} */ (null));
  const ask = async (isMore = false) => {
    isReading.value = true;
    const before = isMore ? read.value : null;
    try {
      const cursor = /** @type {{next?: string} | null} */ (before)?.next;
      read.value = joined(before, await fetchJson(cursor ? `${address}&${new URLSearchParams({ cursor })}` : address));
      problem.value = null;
    } catch (error) {
      problem.value = /** @type {any} */ (error);
    } finally {
      isReading.value = false;
    }
  };
  return { read: read.value, isReading: isReading.value, problem: problem.value, ask };
}

/**
 * For an element with what was read: it has the focus where the button that was pressed is gone.
 * @param {boolean} isRead
 * @param {boolean} [isLast] - Whether nothing more is offered.
 */
export function useFocusOfButton(isRead, isLast = true) {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  useLayoutEffect(() => {
    if (isRead && document.activeElement === document.body) element.current?.focus({ preventScroll: true });
  }, [isRead, isLast]);
  return element;
}
