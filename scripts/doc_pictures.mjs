// SPDX-License-Identifier: Apache-2.0
// doc_pictures.mjs TACET [CHROMIUM]: takes the pictures of docs/images from the pages that the tutorials write.
import {execFileSync, spawnSync} from "node:child_process";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {dirname, join, resolve} from "node:path";
import {fileURLToPath} from "node:url";
import {startChromium} from "../tests/browser/chromium.mjs";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const [tacet, chromium = "/usr/bin/chromium"] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "tacet-pictures-"));
const logs = join(folder, "logs");
execFileSync("python3", [join(root, "tests/topology/make_setup_logs.py"), logs, "--shape", "h100", "--nodes", "2", "--fault", "nic-missing"]);
const pages = [
  ["diagnose", join(root, "tests/corpus/mesh_stuck"), 680, ""],
  ["topology", logs, 800, "rings"],
  ["profile", join(root, "tests/corpus/straggler"), 900, ""],
];
const browser = await startChromium(chromium);
try {
  for (const [command, input, height, section] of pages) {
    const page = join(folder, command + ".html");
    spawnSync(tacet, [command, "--html", page, input]);
    const opened = await browser.open("file://" + page, {width: 1000, height});
    if (section) await opened.evaluate(`document.getElementById("${section}").scrollIntoView()`);
    await opened.screenshot(join(root, "docs/images", command + ".png"), false);
  }
} finally {
  await browser.close();
  rmSync(folder, {recursive: true});
}
