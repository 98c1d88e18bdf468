// SPDX-License-Identifier: Apache-2.0
// node browser_pages.mjs CHROMIUM TACET SOURCES layout|axe: every page of real recordings, on a phone and on a desk, by day and by
// night: nothing is wider than the screen and nothing is cut off; or axe-core (web/node_modules) finds nothing to complain about.
import assert from "node:assert/strict";
import {execFileSync, spawnSync} from "node:child_process";
import {existsSync, mkdtempSync, readFileSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {openChecks} from "./page_checks.mjs";

const [program, tacet, sources, mode] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "tacet-pages-"));
process.on("exit", () => rmSync(folder, {recursive: true, force: true}));
const axePath = join(sources, "web/node_modules/axe-core/axe.min.js");
const axe = mode === "axe" ? readFileSync(axePath, "utf8") : null;

const corpus = (name) => join(sources, "tests/corpus", name), golden = (name) => join(sources, "tests/golden", name, "input");
const samples = (name) => join(sources, "src/evidence", name, "samples");
const PAGES = {
  hang: ["diagnose", corpus("dead_rank")], mesh: ["diagnose", corpus("mesh_stuck_ras")], crash: ["diagnose", golden("rank_out_of_memory")], slow: ["diagnose", corpus("straggler")],
  healthy: ["diagnose", golden("healthy_job")], unclear: ["diagnose", golden("victims_log_alone")],
  profile: ["profile", corpus("straggler")], pipeline: ["profile", corpus("gpt_pp_heavy")], sharded: ["profile", corpus("gpt_fsdp")],
  compare: ["compare", corpus("gpt_ddp_b1"), corpus("gpt_ddp_b25")], topology: ["topology", corpus("clean_ddp")],
  sweeps: ["bandwidth", samples("nccl_tests")], matrices: ["bandwidth", samples("nvbandwidth"), samples("iperf3"), samples("osu")],
};
for (const [name, command] of Object.entries(PAGES)) {
  const ran = spawnSync(tacet, [...command, "--html", join(folder, name + ".html")], {stdio: "ignore"});
  assert.ok(existsSync(join(folder, name + ".html")), name + " was not written (" + ran.status + ")");
}
execFileSync(tacet, ["postmortem", corpus("dead_rank"), "-o", join(folder, "postmortem.html")], {stdio: "ignore"});

// Text that sticks out of the screen, or out of a box that cuts it; what may be scrolled by its nature is left out.
const CUT_OFF = `(() => {
  const wide = document.documentElement.clientWidth, found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const holder = node.parentElement;
    if (!node.data.trim() || !holder.checkVisibility() || holder.closest("script, style, nav, .matrix, .grid, .skip, .offscreen, thead, svg, pre.code")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1) continue;
      let cut = box.right > wide + 1 || box.left < -1;
      for (let outer = holder; outer && !cut && outer !== document.body; outer = outer.parentElement) {
        if (getComputedStyle(outer).overflowX === "visible") continue;
        cut = box.right > outer.getBoundingClientRect().right + 1;
      }
      if (cut) { found.push(node.data.trim().slice(0, 60) + " in " + holder.tagName.toLowerCase() + "." + holder.className); break; }
    }
  }
  return found.slice(0, 5);
})()`;

const AXE = `axe.run(document, {resultTypes: ["violations"], rules: {region: {enabled: false}}}).then((found) =>
  found.violations.map((one) => one.id + ": " + one.nodes.slice(0, 3).map((node) => node.target.join(" ") + " " + (node.any[0]?.message ?? "")).join("; ")))`;

const {check, finish} = await openChecks(program, folder);
// What is looked at depends on the width or on the colours, never on both.
const VIEWS = [[360, "light"], [1280, "dark"]];
for (const name of [...Object.keys(PAGES), "postmortem"])
  for (const [width, theme] of VIEWS)
    await check(`${name}, ${width} pixels, ${theme}`, name, {width, theme}, async (page) => {
      await page.evaluate("for (const node of document.querySelectorAll('details')) node.open = true");
      if (axe) return assert.deepEqual(await page.evaluate(axe + ";\n" + AXE), [], "axe-core");
      const over = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
      assert.ok(over <= 0, over + " pixels too wide");
      assert.deepEqual(await page.evaluate(CUT_OFF), [], "text that is cut off");
      assert.ok(!/\bNaN\b|\bundefined\b|\[object/.test(await page.evaluate("document.body.innerText")), "figures that are none");
    });

if (axe) await finish();
await check("a command and the summary can be copied", "hang", {}, async (page) => {
  const commands = await page.evaluate(`[...document.querySelectorAll("#verdict .command code")].map((node) => node.innerText)`);
  assert.deepEqual(commands, ["dmesg -T | grep -iE 'killed process|segfault|xid'", "PYTHONFAULTHANDLER=1", "df -h /dev/shm"]);
  // What the page hands to the clipboard, seen from outside.
  await page.evaluate(`(() => { window.copied = []; document.execCommand = () => { window.copied.push(document.activeElement.value ?? ""); return true; };
    if (navigator.clipboard) navigator.clipboard.writeText = (text) => { window.copied.push(text); return Promise.resolve(); };
    document.querySelector("#verdict .command .copy").click(); document.querySelector("#verdict .chat .copy").click(); })()`);
  const [command, summary] = await page.evaluate("window.copied");
  assert.equal(command, commands[0]);
  assert.equal(summary.split("\n").length, 3);
  assert.match(summary, /^HANG: rank 3 on vm \(rank-dead, likely\)\nRank 3's process is gone.*\nNext: /);
});

await check("commands are whole, and no more than commands", "hang", {}, async () => {
  const source = readFileSync(new URL("../../web/copy.js", import.meta.url), "utf8");
  const {splitCommands} = new Function(source + "; return {splitCommands};")();
  const commandsOf = (sentence) => splitCommands(sentence).filter((part) => part.command).map((part) => part.text);
  for (const [sentence, ...commands] of [
    ["Do it and the host work (lctl ping NID, ping, ibstat)?", "lctl ping NID", "ibstat"],
    ["On each host: ip route get ADDRESS for the address of another.", "ip route get ADDRESS"],
    ["sinfo -R and scontrol show node NODE show why.", "scontrol show node NODE"],
    ["Check systemctl status nvidia-fabricmanager; its version", "systemctl status nvidia-fabricmanager"],
    ["lsmod | grep peermem on all hosts", "lsmod | grep peermem"],
    ["lspci -s DEVICE -vv shows what it is", "lspci -s DEVICE -vv"],
    ["Run 'tacet lint --strict' on job scripts", "tacet lint --strict"],
    ["A ping takes long, and the ip of a host is free to change."],
  ]) assert.deepEqual(commandsOf(sentence), commands, sentence);
});

await check("evidence quotes the very line", "hang", {}, async (page) => {
  const quotes = await page.evaluate(`[...document.querySelectorAll("#finding-1 figure")].map((node) => node.innerText)`);
  const log = readFileSync(join(corpus("dead_rank"), "nccl_rank1.log"), "utf8").split("\n");
  const cited = quotes.find((quote) => quote.includes("nccl_rank1.log:"));
  const line = Number(/nccl_rank1\.log:(\d+)/.exec(cited)[1]);
  assert.ok(cited.includes(log[line - 1].trim()), cited);
});

await finish();
