// @ts-check
// Puts the page together: header, navigation, and the screen that the address names.

import { signal, useSignal } from "@preact/signals";
import { render } from "preact";
import { useEffect } from "preact/hooks";
import { addressOf, lasting } from "./core/place/place.js";
import { SCREENS, screenOf } from "./core/place/screens.js";
import { presentNow_ms, Skeleton } from "./parts/data/asking.js";
import { html } from "./parts/html.js";
import { Link, place } from "./parts/place.js";
import { Saved } from "./parts/saved.js";
import { Account, session } from "./parts/data/session.js";

/** Modules of screens that have come. @type {Map<string, Function>} */
const loaded = new Map();
/** How many have come: the page is drawn again then. */
const drawn = signal(0);
const problem = signal("");

/** Loads the module of a screen, if it is not there. @param {string} name */
async function load(name) {
  const screen = screenOf(name);
  if (!screen || loaded.has(name)) return;
  try {
    loaded.set(name, (await screen.load()).default);
    problem.value = "";
    drawn.value += 1;
  } catch {
    problem.value = "The dashboard's server does not answer. Load the page again.";
  }
}

function Page() {
  const name = place.value.screen;
  const screen = screenOf(name);
  useEffect(() => {
    document.title = screen ? `${screen.title} · Playhead` : "Playhead";
    load(name);
  }, [name]);
  useEffect(() => {
    // On a phone the screens are a row that scrolls.
    document.querySelector("header nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
  }, [name]);
  const Found = loaded.get(name);
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <header class="top">
      <h1><${Link} to=${{ screen: "" }}><img src="/static/icon.svg" alt="" width="26" height="26" />Playhead<//></h1>
      <nav aria-label="Screens">
        ${SCREENS.filter((one) => one.isListed).map((one) => html`<${Link} to=${{ screen: one.name }} aria-current=${one.name === name ? "page" : one.name === screen?.within ? "true" : undefined}>${one.title}<//>`)}
        ${session.value?.operates && html`<a href="/partitions">Partitions</a>`}
      </nav>
      <div class="right"><${Saved} /><${CopyLink} /><${Account} /></div>
    </header>
    <main id="main" tabindex="-1" data-screens=${drawn.value}>
      ${problem.value && html`<p class="notice" role="alert">${problem.value}</p>`}
      ${!screen ? html`<section><h2>There is no such page</h2><p><${Link} to=${{ screen: "" }}>Go to Now<//></p></section>` : Found ? html`<${Found} />` : html`<${Skeleton} height=${400} />`}
    </main>`;
}

const COPIES = { now: "Copies a link to Now, which always shows the present", other: "Copies a link to what is shown: a range up to now is copied as its times" };

function CopyLink() {
  const isCopied = useSignal(false);
  const copy = async () => {
    const link = location.origin + addressOf(lasting(place.value, presentNow_ms()));
    try {
      await navigator.clipboard.writeText(link);
    } catch {
      // Without a secure context nothing may be copied but by hand.
      prompt("Copy this link:", link);
      return;
    }
    isCopied.value = true;
    setTimeout(() => {
      isCopied.value = false;
    }, 2_000);
  };
  return html`<button type="button" class="copy" title=${place.value.screen ? COPIES.other : COPIES.now} onClick=${copy}>${isCopied.value ? "Copied" : "Copy link"}</button>`;
}

// The document names the first screen's modules, so they come with this one: the page is drawn once.
await load(place.value.screen);
const root = /** @type {HTMLElement} */ (document.getElementById("app"));
root.replaceChildren();
render(html`<${Page} />`, root);
