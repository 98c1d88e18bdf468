// SPDX-License-Identifier: Apache-2.0
// node scripts/lint_web.mjs: what the pages' scripts and styles must not do. Each script has to be sound by itself in strict
// mode; the pages show what hostile logs hold, so nothing may turn text into markup or code.
import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { join } from "node:path";
import vm from "node:vm";

const folder = process.argv[2] ?? join(fileURLToPath(new URL(".", import.meta.url)), "..", "web");
const rules = [
  [/\.(innerHTML|outerHTML)\b|insertAdjacentHTML|document\.write/, "makes markup of text; use dom.js"],
  [/\beval\s*\(|\bnew Function\b|setTimeout\(\s*["'`]/, "makes code of text"],
  [/\.setAttribute\(\s*["']on|\bon(click|load|error)\s*=\s*["']/, "an inline handler; the content security policy forbids it"],
  [/https?:\/\/(?!www\.w3\.org\/)[\w.-]+/, "a foreign address; pages work offline"],
  [/^\s*var\s/, "let or const"],
  [/[^=!<>]==[^=]|!=[^=]/, "=== or !==, but for null", /[=!]= null/],
  [/\bconsole\.(log|debug)\b|\bdebugger\b/, "left from debugging"],
];
let found = 0;
const tell = (file, line, what) => {
  console.log(`${file}:${line}: ${what}`);
  ++found;
};
const withoutComments = (text) => text.replace(/\/\*[\s\S]*?\*\//g, (all) => all.replace(/[^\n]/g, "")).replace(/(^|[^:"'`])\/\/.*$/gm, "$1");
for (const file of readdirSync(folder).sort()) {
  if (!/\.(js|css|html)$/.test(file)) continue;
  const text = readFileSync(join(folder, file), "utf8");
  if (!text.endsWith("\n")) tell(file, text.split("\n").length, "no newline at the end");
  text.split("\n").forEach((line, at) => {
    if (/[ \t]$|\t/.test(line)) tell(file, at + 1, "a tab, or space at the end of the line");
  });
  if (!file.endsWith(".html") && !text.includes("SPDX-License-Identifier")) tell(file, 1, "no SPDX line");
  if (file.endsWith(".js")) {
    if (!text.includes("\n// @ts-check\n")) tell(file, 2, "no // @ts-check");
    try {
      new vm.Script(`(() => {"use strict";\n${text}\n})`, { filename: file, lineOffset: -1 });
    } catch (error) {
      tell(file, String(error.stack).match(/:(\d+)/)?.[1] ?? 1, error.message);
    }
    withoutComments(text).split("\n").forEach((line, at) => {
      for (const [wrong, why, unless] of rules) if (wrong.test(unless ? line.replace(unless, "") : line)) tell(file, at + 1, `${why}: ${line.trim().slice(0, 80)}`);
    });
  } else if (file.endsWith(".css") && /@import|url\(\s*["']?https?:/.test(text)) {
    tell(file, 1, "fetches something; pages work offline");
  }
}
console.log(found === 0 ? "web: nothing to complain about" : `web: ${found} complaints`);
process.exit(found === 0 ? 0 : 1);
