// Shows the API's document, /v1/openapi.json, for people to read.

import { membersOf, operationsOf, partsOf, resolved, wordsOf } from "../core/reference.js";
import { byId } from "./format.js";

function made(tag, text = "", attributes = {}) {
  const element = document.createElement(tag);
  element.textContent = text;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function within(tag, children, attributes = {}) {
  const element = made(tag, "", attributes);
  element.append(...children);
  return element;
}

/** A text in which names of fields are code. */
const said = (tag, text, attributes = {}) => within(tag, partsOf(text).map((part) => (part.isCode ? made("code", part.text) : part.text)), attributes);

function tableOf(rows, heads) {
  const head = within("tr", heads.map((text) => made("th", text, { scope: "col" })));
  const body = rows.map((cells) => within("tr", cells.map((cell) => within("td", [cell]))));
  return within("table", [within("thead", [head]), within("tbody", body)]);
}

function parametersOf(operation) {
  const rows = operation.parameters.map((one) => [
    within("code", [one.name]),
    made("span", `${wordsOf(one.schema)}${one.required ? ", required" : ""}`),
    said("span", one.description ?? (one.in === "path" ? "a part of the path" : "")),
  ]);
  return rows.length ? [made("h4", "Parameters"), tableOf(rows, ["name", "type", "meaning"])] : [];
}

function schemaOf(api, schema) {
  const found = resolved(api, schema);
  const rows = membersOf(api, schema).map((one) => [
    within("code", [one.name]),
    made("span", `${one.words}${one.isRequired ? "" : ", may be absent"}`),
    said("span", one.description),
  ]);
  const intro = found.description ? [said("p", found.description, { class: "soft" })] : [];
  return rows.length ? [...intro, tableOf(rows, ["member", "type", "meaning"])] : [made("p", wordsOf(found))];
}

function contentOf(api, content) {
  return Object.entries(content ?? {}).flatMap(([type, one]) => [
    made("p", type, { class: "soft" }),
    ...(type.includes("json") ? schemaOf(api, one.schema) : []),
  ]);
}

function articleOf(api, { method, path, anchor, operation }) {
  const responses = Object.entries(operation.responses);
  const problems = responses.filter(([status]) => status >= "400");
  const answers = responses.filter(([status]) => status < "400");
  const body = operation.requestBody
    ? [made("h4", "Body"), ...contentOf(api, operation.requestBody.content)]
    : [];
  return within("article", [
    within("h3", [within("code", [`${method} ${path}`])], { id: anchor }),
    said("p", operation.summary ?? ""),
    ...parametersOf(operation),
    ...body,
    ...answers.flatMap(([status, one]) => [made("h4", `Answer ${status}`), ...contentOf(api, one.content)]),
    made("h4", "Problems"),
    tableOf(problems.map(([status, one]) => [made("span", status), said("span", one.description)]), ["status", "meaning"]),
  ]);
}

async function show() {
  const answer = await fetch("/v1/openapi.json", { headers: { Accept: "application/json" } });
  if (!answer.ok) throw new Error(String(answer.status));
  const api = await answer.json();
  for (const [group, operations] of operationsOf(api)) {
    const links = operations.map(({ method, path, anchor }) =>
      within("li", [made("a", `${method} ${path.replace("/v1", "")}`, { href: `#${anchor}` })]),
    );
    byId("contents").append(made("strong", group), within("ul", links));
    byId("operations").append(
      made("h2", group),
      ...operations.map((one) => articleOf(api, one)),
      within("details", [made("summary", `Types of ${group}`), ...typesOf(api, operations)]),
    );
  }
  // The document has come after the browser looked for the anchor.
  if (location.hash) document.getElementById(location.hash.slice(1))?.scrollIntoView();
}

function typesOf(api, operations) {
  const names = new Set();
  const wanted = operations.map(({ operation }) => operation);
  const look = (value) => {
    if (Array.isArray(value)) value.forEach(look);
    else if (value && typeof value === "object") {
      const name = value.$ref?.split("/").pop();
      if (name && !names.has(name)) {
        names.add(name);
        look(api.components.schemas[name]);
      }
      Object.values(value).forEach(look);
    }
  };
  wanted.forEach(look);
  return [...names].sort().flatMap((name) => [
    made("h4", name),
    ...schemaOf(api, { $ref: `#/components/schemas/${name}` }),
  ]);
}

show().catch(() => {
  byId("notice").textContent = "The API's document cannot be fetched. Load the page again.";
  byId("notice").hidden = false;
});
