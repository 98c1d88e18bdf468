// SPDX-License-Identifier: Apache-2.0
// node browser_topology.mjs CHROMIUM FOLDER: what the page of topology draws.
import assert from "node:assert/strict";
import {statSync} from "node:fs";
import {join} from "node:path";
import {openChecks} from "./page_checks.mjs";

const [program, folder] = process.argv.slice(2);
const {check, finish} = await openChecks(program, folder);
const text = (selector) => `document.querySelector(${JSON.stringify(selector)}).innerText`;
const howMany = (selector) => `document.querySelectorAll(${JSON.stringify(selector)}).length`;
// From the start of the navigation to the page's load event, its script included.
const opened = "performance.getEntriesByType('navigation')[0].loadEventEnd";

await check("the verdict comes first, then the pictures", "topology2", {}, async (page) => {
  const verdict = await page.evaluate(text("#verdict"));
  for (const part of ["DEGRADED", "Ranks 12 and 13", "shared memory", "Check peer access"]) assert.ok(verdict.includes(part), part);
  assert.equal(await page.evaluate("document.title"), "Tacet topology: degraded");
  assert.equal(await page.evaluate(howMany("#plain")), 0);
});

await check("a ring shows every GPU, every hop and the slow one", "topology2", {}, async (page) => {
  assert.equal(await page.evaluate(howMany("svg.ring .dot-gpu")), 16);
  assert.equal(await page.evaluate(howMany("svg.ring .hop")), 16);
  assert.equal(await page.evaluate(howMany("svg.ring .hop.between")), 2);
  assert.equal(await page.evaluate(howMany("svg.ring .hop.slow")), 1);
  assert.equal(await page.evaluate(howMany("svg.ring .dot-gpu.guilty")), 2);
  assert.match(await page.evaluate(text("#rings .legend")), /shared memory\s+1\b/);
});

await check("channels with the same hops share a button, and buttons change the picture", "topology2", {}, async (page) => {
  assert.equal(await page.evaluate(howMany("#rings .choices:first-of-type button")), 16, "8 rings, 8 trees");
  const title = `document.querySelector("svg.ring .centre .big").textContent`;
  assert.equal(await page.evaluate(title), "channel 0");
  await page.evaluate(`[...document.querySelectorAll("#rings .choices button")].find((one) => one.innerText.trim() === "3, 11").click()`);
  assert.equal(await page.evaluate(title), "channel 3");
});

await check("a node has its GPUs, switches, NICs and CPUs", "topology2", {}, async (page) => {
  assert.equal(await page.evaluate(howMany("#nodes .panel")), 2, "the guilty node is drawn by itself");
  const first = "#nodes .panel:first-child ";
  for (const [what, number] of [[".gpu", 8], [".nic", 8], [".switch", 8], [".cpu", 2], [".nvswitch", 1], [".nvlink", 8]])
    assert.equal(await page.evaluate(howMany(first + what)), number, what);
});

await check("pointing at a hop tells about it", "topology2", {}, async (page) => {
  const place = await page.evaluate(`(() => { const dot = document.querySelectorAll("svg.ring .dot-gpu circle")[3]; dot.scrollIntoView({block: "center"});
    const box = dot.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()`);
  await page.moveMouse(...place);
  const card = await page.evaluate(text(".hover"));
  for (const part of ["Rank 3", "gpu000", "P2P/CUMEM"]) assert.ok(card.includes(part), card);
});

await check("2,048 ranks are folded and stay quick", "topology256", {}, async (page) => {
  console.log("      topology256 opened in " + Math.round(await page.evaluate(opened)) + " ms, " + (await page.evaluate(howMany("*"))) + " elements");
  assert.ok(await page.evaluate(howMany("*")) < 2500, "nodes that are alike are drawn once");
  assert.ok(statSync(join(folder, "topology256.html")).size < 1e6, "what is alike is written once");
  assert.ok(await page.evaluate(howMany("svg.ring .hop")) < 60, "hops inside a fold are not drawn over each other");
  assert.equal(await page.evaluate(howMany("svg.ring .arc.folded")), 1);
  assert.ok((await page.evaluate(`document.querySelector("svg.ring .label.folded").textContent`)).includes("252 identical nodes"));
  assert.equal(await page.evaluate(howMany("svg.ring .hop.slow")), 1, "the slow hop is not folded away");
  assert.equal(await page.evaluate(howMany("svg.tree .leaf")), 256);
  assert.equal(await page.evaluate(howMany("#nodes .panel")), 2);
  await page.evaluate(`document.querySelector("svg.ring .many").dispatchEvent(new MouseEvent("click", {bubbles: true}))`);
  assert.equal(await page.evaluate(howMany("svg.ring .dot-gpu")), 2048);
  await page.evaluate(`(() => { const box = document.querySelector("#gpus input"); box.value = "gpu077"; box.dispatchEvent(new Event("input")); })()`);
  assert.equal(await page.evaluate(howMany("#gpus tbody tr")), 8, "the filter knows hosts");
});

await check("a clean job is green and has no slow hop", "topology_clean", {theme: "dark"}, async (page) => {
  assert.ok((await page.evaluate(text("#verdict"))).includes("HEALTHY"));
  assert.equal(await page.evaluate(howMany("svg.ring .slow, .guilty")), 0);
});

await check("nothing to show is no error", "topology_empty", {}, async (page) => {
  assert.equal(await page.evaluate(howMany("#verdict")), 1);
  assert.ok(!/NaN|Infinity|undefined\b/.test(await page.evaluate("document.body.innerText")));
});

await check("hostile names stay text, and odd numbers break nothing", "topology_hostile", {}, async (page) => {
  assert.equal(await page.evaluate(howMany("script")), 2);
  assert.equal(await page.evaluate(howMany("img, #rings b > i")), 0);
  assert.ok((await page.evaluate("document.body.innerText")).includes("<script>alert(1)</script>"));
  for (let i = 0; i < 8; ++i) await page.evaluate(`document.querySelectorAll("#rings .choices button")[${i}].click()`);
});

await check("a phone gets no sideways scrolling", "topology2", {width: 390, height: 800}, async (page) => {
  assert.ok(await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"));
});

if (process.env.SCREENSHOTS)
  for (const [name, view] of [["topology2", {}], ["topology256", {}], ["topology_clean", {theme: "dark"}]])
    await check("screenshot of " + name, name, view, (page) => page.screenshot(process.env.SCREENSHOTS + "/" + name + ".png"));
await finish();
