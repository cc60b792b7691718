// @ts-check
// Values of clients as labels: a name that has nothing to see gets a word. Pure.

/** What stands for a text of nothing but blanks. */
export const BLANK = "(blank)";

/** From so many characters on a label may be too wide for a column of a phone. */
export const LONG = 16;

/** @param {string} text */
export const labelText = (text) => (text.trim() ? text : BLANK);
