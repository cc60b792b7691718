// @ts-check
// A menu behind its title. Escape, a press elsewhere and the title itself close it.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { html } from "../html.js";

/**
 * Closes what is open by a press elsewhere.
 * @param {boolean} isOpen
 * @param {{current: HTMLElement | null}} box
 * @param {() => void} close
 */
export function useOutside(isOpen, box, close) {
  useEffect(() => {
    if (!isOpen) return undefined;
    const leave = (/** @type {Event} */ event) => {
      if (!box.current?.contains(/** @type {Node} */ (event.target))) close();
    };
    document.addEventListener("pointerdown", leave);
    return () => document.removeEventListener("pointerdown", leave);
  }, [isOpen]);
}

/** @param {{id: string, title: string, hint?: string, draw: (isOpen: boolean, close: () => void) => any}} props - `hint`: a tooltip of the title. */
export function Menu({ id, title, hint, draw }) {
  const isOpen = useSignal(false);
  const box = useRef(/** @type {HTMLDetailsElement | null} */ (null));
  const close = () => {
    isOpen.value = false;
  };
  useOutside(isOpen.value, box, close);
  const escape = (/** @type {KeyboardEvent} */ event) => {
    const menu = box.current;
    // The browser opens it before it says so.
    if (event.key !== "Escape" || !menu?.open) return;
    menu.open = false;
    close();
    menu.querySelector("summary")?.focus();
  };
  return html`<details class="account" id=${id} ref=${box} open=${isOpen.value} onKeyDown=${escape} onToggle=${(/** @type {any} */ event) => { isOpen.value = event.currentTarget.open; }}>
    <summary title=${hint}><span class="who">${title}</span></summary>
    ${draw(isOpen.value, close)}
  </details>`;
}
