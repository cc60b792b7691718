// @ts-check
// Settings: people and invitations, API tokens, environments with their write keys, organisations, thresholds, titles of custom dimensions, the audit log, and the own login.

import { html } from "../../parts/html.js";
import { Skeleton } from "../../parts/data/asking.js";
import { may, session } from "../../parts/data/session.js";
import { Link, place } from "../../parts/place.js";
import Audit from "./audit.js";
import CustomDimensions from "./custom_dimensions.js";
import Environments from "./environments.js";
import Organisations from "./organisations.js";
import People from "./people.js";
import Profile from "./profile.js";
import Thresholds from "./thresholds.js";
import Tokens from "./tokens.js";

/** `needs`: a permission, or to run the installation. @type {Record<string, {title: string, needs: string | null, draw: Function}>} */
const PARTS = {
  profile: { title: "Profile", needs: null, draw: Profile },
  people: { title: "People", needs: null, draw: People },
  environments: { title: "Environments", needs: null, draw: Environments },
  organisations: { title: "Organisations", needs: "operates", draw: Organisations },
  thresholds: { title: "Thresholds", needs: null, draw: Thresholds },
  dimensions: { title: "Custom dimensions", needs: null, draw: CustomDimensions },
  tokens: { title: "API tokens", needs: "manage", draw: Tokens },
  audit: { title: "Audit log", needs: "manage", draw: Audit },
};

export default function Settings() {
  const wanted = place.value.more.part ?? "";
  const isOpen = (/** @type {string} */ name) => {
    const { needs } = PARTS[name];
    return needs === null || (needs === "operates" ? session.value?.operates === true : may(needs));
  };
  const open = Object.keys(PARTS).filter(isOpen);
  const part = open.includes(wanted) ? wanted : "profile";
  // Until it is known who is logged in, nothing is drawn that may be another part in a moment.
  const isUnknown = session.value === null && part !== wanted && wanted in PARTS;
  return html`<section aria-labelledby="settings-head">
    <div class="section-head"><h2 id="settings-head">Settings</h2>
      <nav aria-label="Settings" class="chips">${open.map((name) => html`<${Link} to=${{ more: { part: name } }} aria-current=${name === part ? "page" : undefined}>${PARTS[name].title}<//> `)}</nav></div>
    ${isUnknown ? html`<${Skeleton} height=${160} />` : html`<${PARTS[part].draw} />`}
  </section>`;
}
