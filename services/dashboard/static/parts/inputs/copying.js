// @ts-check
// A button that copies a text that is shown, and says that it did.

import { useSignal } from "@preact/signals";
import { html } from "../html.js";

/**
 * Without a secure context nothing may be copied: the text is marked then, to be copied by hand.
 * @param {{text: string, of: string, button?: any}} props - `of`: the id of the element that shows the text; `button`: a reference to this one.
 */
export function Copy({ text, of, button }) {
  const done = useSignal({ text: "", title: "" });
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      done.value = { text, title: "Copied" };
    } catch {
      getSelection()?.selectAllChildren(/** @type {HTMLElement} */ (document.getElementById(of)));
      done.value = { text, title: "Marked" };
    }
  };
  return html`<button type="button" ref=${button} disabled=${!text} onClick=${copy}>${text && done.value.text === text ? done.value.title : "Copy"}</button>`;
}
