// @ts-check
// Parts of a screen that come when somebody needs them: the first load is without their modules.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { Skeleton } from "./data/asking.js";
import { html } from "./html.js";

const AGAIN_MS = 5_000;

/**
 * A component that is drawn once its module is there; until then a skeleton stands for it.
 * @param {() => Promise<{default: Function}>} load
 * @param {number} height - Of the skeleton.
 */
export function later(load, height) {
  const found = signal(/** @type {{Part: Function} | null} */ (null));
  const ask = async () => {
    try {
      found.value = { Part: (await load()).default };
    } catch {
      setTimeout(ask, AGAIN_MS);
    }
  };
  /** @param {any} props */
  return function Later(props) {
    useEffect(() => {
      if (!found.value) ask();
    }, []);
    return found.value ? html`<${found.value.Part} ...${props} />` : html`<${Skeleton} height=${height} />`;
  };
}
