// @ts-check
// Moments that a chart marks by a line of their own, as when an incident began. They are elements over the drawing: styles give them colours.

/** @typedef {{at_s: number, title: string}} Mark - In seconds since 1970. */

/**
 * Puts the marks where the axis of times has them; those beyond it are left out.
 * @param {import("uplot")} plot
 * @param {Mark[]} marks
 */
export function place(plot, marks) {
  const { min, max } = plot.scales.x;
  for (const one of plot.over.querySelectorAll(".mark")) one.remove();
  for (const [at, { at_s, title }] of marks.entries()) {
    if (min === undefined || max === undefined || min === null || max === null || at_s < min || at_s > max) continue;
    const line = document.createElement("span");
    line.className = at ? "mark is-later" : "mark";
    line.style.left = `${plot.valToPos(at_s, "x")}px`;
    const words = document.createElement("span");
    words.textContent = title;
    line.append(words);
    plot.over.append(line);
  }
}
