// SPDX-License-Identifier: Apache-2.0
// node browser_profile.mjs CHROMIUM FOLDER: what the pages of profile and compare draw.
import assert from "node:assert/strict";
import {openChecks} from "./page_checks.mjs";

const [program, folder] = process.argv.slice(2);
const {check, finish} = await openChecks(program, folder);
const text = (selector) => `document.querySelector(${JSON.stringify(selector)}).innerText`;
const texts = (selector) => `[...document.querySelectorAll(${JSON.stringify(selector)})].map((node) => node.innerText)`;
const howMany = (selector) => `document.querySelectorAll(${JSON.stringify(selector)}).length`;
// Widths of the pieces of a bar in shares of it, those without width left out.
const widths = (selector) => `(() => { const bar = document.querySelector(${JSON.stringify(selector)}), whole = bar.getBoundingClientRect().width;
  return [...bar.children].filter((piece) => !piece.classList.contains("blank")).map((piece) => piece.getBoundingClientRect().width / whole); })()`;

await check("the verdict and the advice come first", "profile4", {}, async (page) => {
  const verdict = await page.evaluate(text("#verdict"));
  for (const part of ["COMMUNICATION-BOUND", "rank 1 makes the others wait", "100.0 ms", "All ranks share one GPU.", "What would save most", "saves about 20.0 % of the step (95 % interval 0.0 % to 35.0 %)"]) assert.ok(verdict.includes(part), part);
  assert.equal(await page.evaluate("document.title"), "Tacet profile: communication-bound");
  assert.equal(await page.evaluate(howMany("#plain")), 0);
});

await check("the bar of the step has its parts in proportion", "profile4", {}, async (page) => {
  const parts = await page.evaluate(widths("#budget .stack.tall"));
  const expected = [0.55, 0.05, 0.3, 0.04, 0.03, 0.02, 0.01];
  assert.equal(parts.length, expected.length);
  parts.forEach((share, i) => assert.ok(Math.abs(share - expected[i]) < 0.005, "part " + i + " is " + share));
  assert.ok((await page.evaluate(text("#budget"))).includes("80.0 ms (rank 1)"), "who computes most");
});

await check("stragglers show the loss", "profile4", {}, async (page) => {
  const waits = await page.evaluate(text("#waits"));
  for (const part of ["1 straggler", "rank\u00a01", "25.0 ms", "75.0 ms", "GPU work", "20.0 % (95 % interval 0.0 % to 35.0 %)", "20.0 % of the step (95 % interval 0.0 % to 35.0 %)", "12.0 min of every hour"]) assert.ok(waits.includes(part), part);
  assert.equal(await page.evaluate('document.querySelector("#waits .datatable tbody tr").cells[0].innerText'), "1", "the latest rank first");
});

await check("steps are columns that the keyboard reaches", "profile4", {}, async (page) => {
  await page.evaluate('document.querySelector("#steps svg").focus()');
  await page.press("End");
  assert.match(await page.evaluate(text("#steps .readout")), /^Step 3: \d/);
  const heights = await page.evaluate(`[...document.querySelectorAll("#steps svg path.p0, #steps svg path.p2")].map((path) => path.getBBox().height)`);
  assert.ok(Math.abs(heights[0] / heights[1] - 55 / 30) < 0.01, "in proportion: " + heights);
});

await check("pointing at a column tells about it", "profile1024", {}, async (page) => {
  const place = await page.evaluate(`(() => { const chart = document.querySelector("#ranks svg"); chart.scrollIntoView({block: "center"});
    const box = chart.getBoundingClientRect(); return [box.x + box.width * (341 + 0.5) / 1024, box.y + box.height / 2]; })()`);
  await page.moveMouse(...place);
  const card = await page.evaluate(text(".hover"));
  for (const part of ["Rank 341 on node-42", "step 100.0 ms", "compute without communication", "80.0 ms, 80.0 %"]) assert.ok(card.includes(part), card);
});

await check("the operations carry their bandwidths", "profile4", {}, async (page) => {
  const row = await page.evaluate(text("#communication tbody tr"));
  for (const part of ["default_pg", "all_reduce", "32 MiB", "640 MiB", "37.3", "65.2"]) assert.ok(row.includes(part), part);
});

await check("a thousand ranks and a hundred thousand steps stay readable", "profile1024", {}, async (page) => {
  assert.ok(await page.evaluate(howMany("*")) < 8000, "only a page of rows is built");
  assert.match(await page.evaluate('document.querySelector("#ranks svg").getAttribute("aria-label")'), /^Mean step of 1,024 ranks, by rank/);
  assert.ok((await page.evaluate(text("#steps"))).includes("step 100,000"));
  await page.evaluate(`[...document.querySelectorAll("#ranks .panel .choices button")].find((one) => one.innerText === "by compute").click()`);
  await page.evaluate('document.querySelector("#ranks svg").focus()');
  await page.press("Home");
  assert.match(await page.evaluate(text("#ranks .readout")), /^Rank 341 on node-42: step 100.0 ms, compute 85.0 %/);
  await page.press("Enter");
  assert.deepEqual(await page.evaluate(`[...document.querySelectorAll("#ranks tbody tr")].map((row) => row.cells[0].innerText)`), ["341"]);
  await page.evaluate(`(() => { const box = document.querySelector("#ranks input"); box.value = "node-77"; box.dispatchEvent(new Event("input")); })()`);
  assert.equal(await page.evaluate(howMany("#ranks tbody tr")), 8, "the filter knows hosts");
});

await check("a trace of one kernel is no error", "profile_tiny", {}, async (page) => {
  assert.ok((await page.evaluate(text("#budget"))).includes("12.0 µs"));
  assert.equal(await page.evaluate(howMany("#ranks, #steps, #waits, #communication")), 0, "what is not there is not drawn");
  assert.ok(!/NaN|Infinity|undefined/.test(await page.evaluate("document.body.innerText")));
});

for (const name of ["profile_empty", "comparison_empty"])
  await check(name + " is no error", name, {}, async (page) => {
    assert.equal(await page.evaluate(howMany("#verdict")), 1);
    assert.ok(!/NaN|Infinity|undefined\b/.test(await page.evaluate("document.body.innerText")));
  });

await check("hostile names stay text", "profile_hostile", {}, async (page) => {
  assert.equal(await page.evaluate("document.title"), "Tacet profile: communication-bound");
  assert.equal(await page.evaluate(howMany("script")), 2);
  assert.equal(await page.evaluate(howMany("img, [onerror]")), 0);
  assert.ok((await page.evaluate("document.body.innerText")).includes("\\x1b[31m"));
});

await check("several jobs have a button each", "profile_two", {}, async (page) => {
  assert.deepEqual(await page.evaluate(texts(".jobs-bar button")), ["job 1", "night run"]);
  await page.evaluate('document.querySelectorAll(".jobs-bar button")[1].click()');
  assert.ok((await page.evaluate(text("#verdict"))).includes("night run"));
  assert.equal(await page.evaluate(howMany("#ranks tbody tr")), 2);
});

await check("a comparison shows rows, bars and how sure they are", "comparison", {}, async (page) => {
  assert.ok((await page.evaluate(text("#verdict"))).startsWith("SLOWER"));
  assert.deepEqual(await page.evaluate(texts("#changed .result")), ["slower", "slower", "faster"]);
  const row = await page.evaluate(text("#changed tbody tr"));
  for (const part of ["100.0 ms", "120.0 ms", "+20.0 %", "+18.0 % .. +22.0 %", "1.0e-9"]) assert.ok(row.includes(part), part);
  const sides = await page.evaluate(`[...document.querySelectorAll("#changed .delta")].map((bar) => { const box = bar.getBoundingClientRect(), piece = bar.querySelector("i").getBoundingClientRect();
    return piece.x + piece.width / 2 > box.x + box.width / 2; })`);
  assert.deepEqual(sides, [true, true, false], "slower to the right, faster to the left");
  assert.equal(await page.evaluate(howMany("#budget .lines .stack")), 2);
  assert.ok((await page.evaluate(text("#lines"))).includes("only in B"));
});

await check("without scripts the text shows", "profile4", {scripts: false}, async (page) => {
  assert.ok((await page.evaluate("document.querySelector('main').textContent")).startsWith("\nCOMMUNICATION-BOUND"));
});

for (const name of ["profile4", "profile1024", "profile_hostile", "comparison"])
  for (const width of [360, 760, 1600])
    await check(`${name} fits ${width} columns of pixels`, name, {width, theme: width === 760 ? "dark" : "light"}, async (page) => {
      const over = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
      assert.ok(over <= 0, over + " pixels too wide");
    });

await finish();
