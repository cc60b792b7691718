// The page of logins, and of links that work once: /login#phl_... What comes behind # is never sent by itself.

import { byId } from "./format.js";

// Where the login leads: a path of this page's origin, and nothing else.
function destination() {
  const wanted = new URLSearchParams(location.search).get("to") ?? "/";
  const url = URL.canParse(wanted, location.origin) ? new URL(wanted, location.origin) : null;
  return url !== null && url.origin === location.origin && wanted.startsWith("/") ? url.pathname + url.search : "/";
}

async function send(path, content) {
  try {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(content),
    });
    return { status: answer.status, content: await answer.json() };
  } catch {
    return { status: 0, content: { detail: "The dashboard's server does not answer." } };
  }
}

function say(text) {
  byId("notice").textContent = text;
  byId("notice").hidden = !text;
}

// The problem of an address that asks for too much at a time, whether or not a login has failed.
const TOO_MANY = "urn:playhead:problem:too-many";

function problem({ status, content }) {
  if (status === 503) return "Postgres does not answer, so nobody can log in now. Try again in a moment.";
  if (content.type === TOO_MANY) return "Too many requests of your address wait. Try again in a moment.";
  if (status === 429) return "Too many logins have failed. Try again in a minute or two.";
  if (status === 410) return "This link is unknown, was used, or has expired.";
  return `${content.detail ?? content.title ?? "It did not work"}.`;
}

function show(kind, email) {
  const isFirst = kind === "first_owner";
  const isNew = isFirst || kind === "invitation";
  byId("title").textContent = isFirst ? "Begin: the first owner" : isNew ? "Join" : "Log in";
  byId("submit").textContent = isNew ? "Make the account" : "Log in";
  byId("name-field").hidden = !isNew;
  byId("code-field").hidden = true;
  byId("organisation-field").hidden = !isFirst;
  byId("organisation").required = isFirst;
  byId("password").autocomplete = isNew ? "new-password" : "current-password";
  byId("note").textContent = isNew ? "A password has at least 12 characters." : "";
  if (email) {
    byId("email").value = email;
    byId("email").readOnly = true;
  }
  byId("form").hidden = false;
}

// What went wrong at the provider, or on the way back from it.
const FAILED = {
  away: "The provider of the login does not answer. Try again in a moment.",
  busy: "Too many logins at the provider have begun from your network. Try again in a few minutes.",
  refused: "The login at the provider did not work. Try again.",
  unknown: "The provider knows you, but nobody has invited you here.",
  off: "There is no other way to log in.",
};

async function offerProvider() {
  try {
    const { provider } = await (await fetch("/v1/login/ways")).json();
    if (!provider) return;
    byId("provider").textContent = `Log in with ${provider}`;
    byId("provider").href = `/login/there?to=${encodeURIComponent(destination())}`;
    byId("provider-line").hidden = false;
  } catch {
    // A login by password says itself when the server does not answer.
  }
}

async function begin() {
  const link = location.hash.slice(1);
  const failed = FAILED[new URLSearchParams(location.search).get("failed")];
  if (failed) say(failed);
  if (!link) offerProvider();
  if (!link) {
    show("login");
    return;
  }
  // The address bar and the history forget it.
  history.replaceState(null, "", location.pathname + location.search);
  const found = await send("/v1/link", { link });
  if (found.status !== 200) {
    say(problem(found));
    show("login");
    return;
  }
  if (found.content.kind === "login") {
    const used = await send("/v1/link/use", { link });
    if (used.status === 200) location.replace(destination());
    else say(problem(used));
    return;
  }
  show(found.content.kind, found.content.email);
  byId("form").dataset.link = link;
}

byId("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(byId("form")));
  const { link } = byId("form").dataset;
  const words = byId("submit").textContent;
  // A password is checked slowly on purpose: nothing said in that time reads as nothing done.
  byId("submit").textContent = "Checking …";
  byId("submit").disabled = true;
  say("");
  const answer = link
    ? await send("/v1/link/use", { ...given, link })
    : await send("/v1/login", { email: given.email, password: given.password, code: given.code });
  byId("submit").disabled = false;
  byId("submit").textContent = words;
  if (answer.status === 200 && answer.content.session) {
    location.replace(destination());
    return;
  }
  if (answer.content.type?.endsWith(":code-needed")) {
    byId("code-field").hidden = false;
    byId("code").focus();
    say("");
    return;
  }
  if (answer.status === 200) {
    delete byId("form").dataset.link;
    show("login");
    say("You have joined with the account that you have: log in");
    return;
  }
  say(problem(answer));
});

// Another link that is opened in the same tab changes only what comes behind #: no other page would be loaded.
addEventListener("hashchange", () => location.reload());

begin();
