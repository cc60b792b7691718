// Who is logged in: shown in the header, with the ways out. A session that has ended leads to the login.

import { byId, fetchSoon } from "./format.js";

let csrf = "";

export function toLogin() {
  location.assign(`/login?to=${encodeURIComponent(location.pathname + location.search)}`);
}

// An answer of 401 says that the session has ended. Every other one, and none, says nothing of it.
export async function ask(path) {
  const answer = await fetchSoon(path);
  if (answer.status === 401) toLogin();
  return answer;
}

export async function offerLogout() {
  try {
    const answer = await ask("/api/session");
    if (!answer.ok) return;
    const found = await answer.json();
    csrf = found.csrf;
    byId("who").textContent = `${found.name} · ${found.organisation}`;
    byId("account").hidden = false;
  } catch {
    // The page says itself when the server does not answer.
    setTimeout(offerLogout, 5_000);
  }
}

async function leave(path) {
  const answer = await fetch(path, { method: "POST", headers: { "Playhead-CSRF": csrf } });
  if (answer.ok || answer.status === 401) location.assign("/login");
}

byId("log-out").addEventListener("click", () => leave("/api/logout"));
byId("log-out-everywhere").addEventListener("click", () => leave("/api/logout/everywhere"));
