// The API's document as a reader shows it: operations in their groups, parameters, and schemas in words. Pure.

const METHODS = ["get", "post", "put", "patch", "delete"];

/** Every operation by its group, each with its anchor. */
export function operationsOf(document) {
  const groups = new Map();
  for (const [path, item] of Object.entries(document.paths ?? {})) {
    for (const method of METHODS) {
      const operation = item[method];
      if (!operation) continue;
      const group = operation.tags?.[0] ?? "other";
      if (!groups.has(group)) groups.set(group, []);
      groups.get(group).push({ method: method.toUpperCase(), path, anchor: operation.operationId, operation });
    }
  }
  return groups;
}

/** The schema that a reference means. */
export function resolved(document, schema) {
  const name = schema?.$ref?.split("/").pop();
  return name === undefined ? schema ?? {} : document.components?.schemas?.[name] ?? {};
}

/** A schema in a few words: its type, its values, its bounds. */
export function wordsOf(schema) {
  if (!schema) return "anything";
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(wordsOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.type === "array") return `list of ${wordsOf(schema.items)}`;
  if (schema.type === "object" && schema.additionalProperties) return `map of ${wordsOf(schema.additionalProperties)}`;
  return [schema.type ?? "anything", ...boundsOf(schema)].join(", ");
}

function boundsOf(schema) {
  const found = [];
  if (schema.minimum !== undefined) found.push(`≥ ${schema.minimum}`);
  if (schema.maximum !== undefined) found.push(`≤ ${schema.maximum}`);
  return found;
}

/** The members of an object's schema, in their order. */
export function membersOf(document, schema) {
  const found = resolved(document, schema);
  const required = new Set(found.required ?? []);
  return Object.entries(found.properties ?? {}).map(([name, of]) => ({
    name,
    words: wordsOf(of),
    description: of.description ?? "",
    isRequired: required.has(name),
  }));
}

/** A text of the document in parts: what stands between backticks is code. */
export function partsOf(text) {
  return text.split("`").map((part, at) => ({ text: part, isCode: at % 2 === 1 })).filter((part) => part.text);
}
