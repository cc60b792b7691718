// @ts-check
// A form and a button, each of which waits for the answer and says what is wrong.

import { useSignal } from "@preact/signals";
import { html } from "../html.js";

/** A form whose answer is waited for. @param {{id: string, send: (form: FormData) => Promise<any>, done: () => void, children?: any, title?: string, hasReset?: boolean}} props */
export function Form({ id, send, done, children, title = "Save", hasReset = true }) {
  const problem = useSignal("");
  const isSending = useSignal(false);
  const submit = async (/** @type {any} */ event) => {
    event.preventDefault();
    // Another press would make a second one.
    if (isSending.value) return;
    isSending.value = true;
    try {
      await send(new FormData(event.target));
      problem.value = "";
      if (hasReset) event.target.reset();
      done();
    } catch (wrong) {
      const found = /** @type {any} */ (wrong);
      problem.value = `${found.title}. ${found.detail}`;
    } finally {
      isSending.value = false;
    }
  };
  return html`<form class="pick" id=${id} onSubmit=${submit}>${children}<button type="submit" aria-disabled=${isSending.value ? "true" : undefined}>${title}</button><span class="note" role="status">${isSending.value && " …"}</span>
    ${problem.value && html`<p class="notice" role="alert">${problem.value}</p>`}</form>`;
}

/** A button that does one thing, and says that it did. @param {{title: string, act: () => Promise<any>, done: () => void, of?: string, asks?: string}} props - `of`: what it does it to, where other rows have the same button; screen readers name it. `asks`: what is asked before, where nothing brings it back. */
export function Act({ title, act, done, of, asks }) {
  const state = useSignal("");
  const isSending = useSignal(false);
  const press = async () => {
    if (isSending.value || (asks && !confirm(asks))) return;
    isSending.value = true;
    state.value = "…";
    try {
      await act();
      state.value = `${title}: done`;
      done();
    } catch (wrong) {
      state.value = /** @type {any} */ (wrong).title;
    } finally {
      isSending.value = false;
    }
  };
  return html`<button type="button" aria-label=${of && `${title}: ${of}`} aria-disabled=${isSending.value ? "true" : undefined} onClick=${press}>${title}</button> <span class="note" role="status">${state.value}</span>`;
}
