// @ts-check
// What every part is written with: templates of Preact by htm.

import htm from "htm";
import { h } from "preact";

export const html = htm.bind(h);
