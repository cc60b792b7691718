// @ts-check
// A field for typing. Preact sets a `value` again whenever it draws, so that an answer that comes would take what is being typed.

import { useLayoutEffect, useRef } from "preact/hooks";
import { html } from "../html.js";

/**
 * An input that shows `value` until somebody types, and again once `value` becomes another one. Others are attributes of the input.
 * @param {{value: string, [name: string]: any}} props
 */
export function Field({ value, ...others }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    if (input.current && input.current.value !== value) input.current.value = value;
  }, [value]);
  return html`<input ref=${input} defaultValue=${value} ...${others} />`;
}
