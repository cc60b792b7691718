// @ts-check
// The screens, each with its path, its place in the navigation, and the module that draws it. Pure.

/**
 * @typedef {object} Screen
 * @property {string} name - The path without its slash.
 * @property {string} title
 * @property {boolean} isListed - Whether the navigation has it.
 * @property {string} [within] - The one of the navigation that leads to it.
 * @property {() => Promise<{default: Function}>} load
 */

/** @type {Screen[]} */
export const SCREENS = [
  { name: "", title: "Now", isListed: true, load: () => import("../../screens/now/now.js") },
  { name: "explore", title: "Explore", isListed: true, load: () => import("../../screens/explore/explore.js") },
  { name: "errors", title: "Errors", isListed: true, load: () => import("../../screens/errors.js") },
  { name: "views", title: "Views", isListed: true, load: () => import("../../screens/views/views.js") },
  { name: "titles", title: "Titles", isListed: true, load: () => import("../../screens/titles/titles.js") },
  { name: "alerts", title: "Alerts", isListed: true, load: () => import("../../screens/alerts/alerts.js") },
  { name: "incident", title: "Incident", isListed: false, within: "alerts", load: () => import("../../screens/alerts/incident.js") },
  { name: "view", title: "View", isListed: false, within: "views", load: () => import("../../screens/views/view.js") },
  { name: "integration", title: "Integration", isListed: true, load: () => import("../../screens/integration.js") },
  { name: "settings", title: "Settings", isListed: true, load: () => import("../../screens/settings/settings.js") },
];

/** @param {string} name */
export const screenOf = (name) => SCREENS.find((one) => one.name === name) ?? null;
