// @ts-check
// Settings: people and invitations, API tokens, environments with their write keys, thresholds, titles of custom dimensions, the audit log, and the own login.

import { html } from "../../parts/html.js";
import { may } from "../../parts/data/session.js";
import { Link, place } from "../../parts/place.js";
import Audit from "./audit.js";
import CustomDimensions from "./custom_dimensions.js";
import Environments from "./environments.js";
import People from "./people.js";
import Profile from "./profile.js";
import Thresholds from "./thresholds.js";
import Tokens from "./tokens.js";

/** @type {Record<string, {title: string, needs: string | null, draw: Function}>} */
const PARTS = {
  profile: { title: "Profile", needs: null, draw: Profile },
  people: { title: "People", needs: null, draw: People },
  environments: { title: "Environments", needs: null, draw: Environments },
  thresholds: { title: "Thresholds", needs: null, draw: Thresholds },
  dimensions: { title: "Custom dimensions", needs: null, draw: CustomDimensions },
  tokens: { title: "API tokens", needs: "manage", draw: Tokens },
  audit: { title: "Audit log", needs: "manage", draw: Audit },
};

export default function Settings() {
  const part = PARTS[place.value.more.part ?? ""] ? place.value.more.part : "profile";
  const open = Object.entries(PARTS).filter(([, { needs }]) => needs === null || may(needs));
  return html`<section aria-labelledby="settings-head">
    <div class="section-head"><h2 id="settings-head">Settings</h2>
      <nav aria-label="Settings" class="chips">${open.map(([name, { title }]) => html`<${Link} to=${{ more: { part: name } }} aria-current=${name === part ? "page" : undefined}>${title}<//> `)}</nav></div>
    <${PARTS[part].draw} />
  </section>`;
}
