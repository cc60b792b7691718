// @ts-check
// Receivers of messages: listed, made, changed, tested.

import { useSignal } from "@preact/signals";
import { Act, Form } from "../../parts/inputs/forms.js";
import { html } from "../../parts/html.js";
import { change, mayChange } from "../../parts/data/session.js";

/** @type {Record<string, [string, string][]>} */
const PARTS = {
  webhook: [["url", "Address"], ["secret", "Secret"]],
  slack: [["url", "Address"]],
  teams: [["url", "Address"]],
  pagerduty: [["routing_key", "Integration key"]],
  email: [["to", "Addresses, with commas"]],
};

/** @param {{receivers: any[], done: () => void}} props */
export function Receivers({ receivers, done }) {
  const edited = useSignal("");
  if (!receivers.length) return html`<p class="empty" id="no-receivers">No receiver yet.</p>`;
  const changed = receivers.find((one) => one.id === edited.value);
  const finish = () => {
    edited.value = "";
    done();
  };
  return html`<div class="scroll" tabindex="0" role="region" aria-label="Receivers"><table id="receivers">
    <thead><tr><th scope="col">Receiver</th><th scope="col">Kind</th><th scope="col">Changed by</th><th scope="col">Actions</th></tr></thead>
    <tbody>${receivers.map((one) => html`<tr key=${one.id}>
      <th scope="row">${one.name}</th><td>${one.kind}</td><td>${one.changed_by}</td>
      <td>${mayChange() && html`<${Act} title="Send a test" of=${one.name} act=${() => change("POST", `/v1/alerts/receivers/${one.id}/test`)} done=${done} />
        <button type="button" aria-label=${`Change: ${one.name}`} onClick=${() => { edited.value = edited.value === one.id ? "" : one.id; }}>Change</button>
        <${Act} title="Delete" of=${one.name} asks=${`Delete the receiver ${one.name}?`} act=${() => change("DELETE", `/v1/alerts/receivers/${one.id}`)} done=${done} />`}</td>
    </tr>`)}</tbody>
  </table></div>
  ${changed && html`<${ReceiverForm} key=${changed.id} id="change-receiver" receiver=${changed} done=${finish} />`}`;
}

/** Makes a receiver, or changes one: then its address stays where none is typed. @param {{id: string, receiver?: any, done: () => void}} props */
export function ReceiverForm({ id, receiver, done }) {
  const kind = useSignal(receiver?.kind ?? "email");
  const send = (/** @type {FormData} */ form) => {
    const typed = Object.fromEntries(PARTS[kind.value].map(([name]) => [name, String(form.get(name))]));
    const to = typed.to && { to: typed.to.split(",").map((one) => one.trim()) };
    const isTyped = Object.values(typed).some(Boolean);
    const body = { name: String(form.get("name")), template: String(form.get("template")) || null };
    if (receiver) return change("PUT", `/v1/alerts/receivers/${receiver.id}`, isTyped ? { ...body, target: to || typed } : body);
    return change("POST", "/v1/alerts/receivers", { ...body, kind: kind.value, target: to || typed });
  };
  const isNew = !receiver;
  return html`<${Form} id=${id} send=${send} done=${done} title=${isNew ? "Save" : "Save the change"}>
      <label>Name <input name="name" required maxlength="200" defaultValue=${receiver?.name ?? ""} /></label>
      ${isNew && html`<label>Kind <select value=${kind.value} onChange=${(/** @type {any} */ e) => { kind.value = e.target.value; }}>
        ${Object.keys(PARTS).map((name) => html`<option>${name}</option>`)}</select></label>`}
      ${PARTS[kind.value].map(([name, title]) => html`<label key=${name}>${title} <input name=${name} required=${isNew} placeholder=${isNew ? "" : "unchanged"} maxlength="2000" autocomplete="off" /></label>`)}
      <label>Template <input name="template" maxlength="4000" size="30" defaultValue=${receiver?.template ?? ""} placeholder="$title: $value, usually $usual. $link" /></label>
    <//>`;
}
