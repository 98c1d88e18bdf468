// SPDX-License-Identifier: Apache-2.0
// node scripts/check_web.mjs: the pages' scripts under the TypeScript compiler, page by page as they are joined, and under
// eslint. The tools lie in web/node_modules (npm ci in web); without them the built-in lint alone is run and a line says so.
import {execFileSync} from "node:child_process";
import {existsSync, readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {dirname, join, relative} from "node:path";
import {fileURLToPath} from "node:url";

const root = join(dirname(fileURLToPath(import.meta.url)), ".."), web = join(root, "web");
const run = (...args) => {
  try {
    execFileSync(process.execPath, args, {stdio: "inherit", cwd: root});
    return true;
  } catch {
    return false;
  }
};
let sound = run(join(root, "scripts/lint_web.mjs")) && run(join(root, "scripts/make_page_types.mjs"), "--check");
if (!["typescript", "eslint"].every((tool) => existsSync(join(web, "node_modules", tool)))) {
  console.log("web: typescript and eslint are not installed (npm ci in web): only the built-in lint was run");
  process.exit(sound ? 0 : 1);
}

// cmake/join_page.cmake is the one list of pages: set(scripts a.js b.js).
const pages = [...readFileSync(join(root, "cmake/join_page.cmake"), "utf8").matchAll(/PAGE STREQUAL "(\w+)"[\s\S]*?set\(scripts ([^)]*)\)/g)];
const ts = createRequire(join(web, "package.json"))("typescript");
const options = {allowJs: true, checkJs: true, noEmit: true, strict: true, noImplicitAny: false, useUnknownInCatchVariables: true, noUnusedLocals: false,
  target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.None, lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"], types: []};
const told = new Set();
for (const [, page, names] of pages) {
  const files = [join(web, "types.d.ts"), ...names.trim().split(/\s+/).map((name) => join(web, name))];
  for (const one of ts.getPreEmitDiagnostics(ts.createProgram(files, options))) {
    const at = one.file ? one.file.getLineAndCharacterOfPosition(one.start ?? 0) : null;
    const line = (one.file && at ? relative(root, one.file.fileName) + ":" + (at.line + 1) : page) + ": " + ts.flattenDiagnosticMessageText(one.messageText, " ");
    if (!told.has(line)) console.log(line);
    told.add(line);
  }
}
if (pages.length < 5) told.add("too few pages were found in cmake/join_page.cmake");
console.log(told.size === 0 ? `web: types agree on ${pages.length} pages` : `web: ${told.size} complaints of the compiler`);
sound = run(join(web, "node_modules/eslint/bin/eslint.js"), "--config", join(web, "eslint.config.mjs"), "--max-warnings", "0", "web") && told.size === 0 && sound;
process.exit(sound ? 0 : 1);
