// SPDX-License-Identifier: Apache-2.0
// node scripts/make_page_types.mjs [--check]: writes web/types.d.ts, the types of what the pages show, from the schemas of
// the reports (docs/schema) and of what only pages get (web/schema). With --check it tells whether the file is current.
import {readFileSync, readdirSync, writeFileSync} from "node:fs";
import {dirname, join} from "node:path";
import {fileURLToPath} from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), "..");
const target = join(root, "web", "types.d.ts");
// Reports that a page shows as they are; the others have no page.
const NAMES = {"tacet.report.v1": "Report", "tacet.profile.v1": "Profile", "tacet.compare.v1": "Comparison", "tacet.bandwidth.v1": "BandwidthPage"};

const schemas = new Map();
for (const folder of ["docs/schema", "web/schema"])
  for (const file of readdirSync(join(root, folder)).sort())
    if (file.endsWith(".json")) schemas.set(file.replace(/\.json$/, ""), JSON.parse(readFileSync(join(root, folder, file), "utf8")));

// "tacet.profile.v1#/properties/jobs/items" -> the schema at that place.
function resolve(reference) {
  const [file, path] = reference.split("#");
  let place = schemas.get(file);
  for (const key of path.split("/").filter(Boolean)) place = place?.[key];
  if (!place) throw new Error("nothing is at " + reference);
  return place;
}

const declared = new Map();  // name -> lines
const pascal = (text) => text.replace(/(^|[_-])(\w)/g, (_, __, letter) => letter.toUpperCase());
// [{...}] of "findings" is a Finding.
const singular = (text) => (text.endsWith("ies") ? text.slice(0, -3) + "y" : text.endsWith("ses") || text.endsWith("ches") ? text.slice(0, -2) : text.endsWith("s") ? text.slice(0, -1) : text + "Item");

function typeOf(schema, name) {
  if (schema.$ref) return typeOf(resolve(schema.$ref), name);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const kinds = [schema.type ?? []].flat();
  if (kinds.length === 0) return "any";
  return kinds.map((kind) => {
    if (kind === "object") return objectType(schema, name);
    if (kind === "array") return arrayOf(schema, name);
    return kind === "integer" ? "number" : kind;
  }).sort((a, b) => Number(a === "null") - Number(b === "null")).join(" | ");
}

function arrayOf(schema, name) {
  const held = schema.items ? typeOf(schema.items, singular(name)) : "any";
  return /[ |]/.test(held) ? `(${held})[]` : held + "[]";
}

function objectType(schema, name) {
  if (!schema.properties) return schema.additionalProperties ? `Record<string, ${typeOf(schema.additionalProperties, name + "Value")}>` : "Record<string, any>";
  const required = new Set(schema.required ?? []);
  const lines = Object.entries(schema.properties).map(([key, held]) => {
    const note = held.description ? `  /** ${held.description} */\n` : "";
    return `${note}  ${key}${required.has(key) ? "" : "?"}: ${typeOf(held, name + pascal(key))};`;
  });
  const text = lines.join("\n");
  for (const [known, body] of declared) if (body === text) return known;  // one record has one name
  declared.set(name, text);
  return name;
}

for (const [file, schema] of schemas) {
  const name = NAMES[file] ?? (schema.$id && !schema.$id.startsWith("tacet.") ? schema.$id : null);
  if (name) objectType(schema, name);
}
const text = "// SPDX-License-Identifier: Apache-2.0\n// Written by scripts/make_page_types.mjs from docs/schema and web/schema. Do not edit.\n\n" +
  [...declared].map(([name, body]) => `interface ${name} {\n${body}\n}\n`).join("\n");
if (process.argv.includes("--check")) {
  let held = "";
  try {
    held = readFileSync(target, "utf8");
  } catch {
    // told below
  }
  if (held !== text) {
    console.log("web/types.d.ts is not what the schemas say: run node scripts/make_page_types.mjs");
    process.exit(1);
  }
} else {
  writeFileSync(target, text);
}
