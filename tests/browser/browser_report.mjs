// SPDX-License-Identifier: Apache-2.0
// node browser_report.mjs CHROMIUM FOLDER: what a reader sees of the sample reports, and what an attacker cannot do.
import assert from "node:assert/strict";
import {openChecks} from "./page_checks.mjs";

const [program, folder] = process.argv.slice(2);
const {check, finish} = await openChecks(program, folder);
const text = (selector) => `document.querySelector(${JSON.stringify(selector)}).innerText`;
const howMany = (selector) => `document.querySelectorAll(${JSON.stringify(selector)}).length`;

await check("the verdict comes first", "hang", {}, async (page) => {
  const verdict = await page.evaluate(text("#verdict"));
  for (const part of ["HANG", "Rank 5 on node-b", "never issued all_reduce #13", "mesh_tp (group 5)", "ranks 0-4, 6 and 7", "rank-stuck-on-host", "certain", "What to do now"])
    assert.ok(verdict.includes(part), part);
  assert.equal(await page.evaluate("document.title"), "Tacet: hang");
  assert.equal(await page.evaluate(howMany("#plain")), 0, "the text report has given way");
});

await check("findings show their evidence", "hang", {}, async (page) => {
  assert.equal(await page.evaluate(howMany("details.finding")), 2);
  assert.ok(await page.evaluate('document.querySelector("#finding-1").open'));
  const first = await page.evaluate(text("#finding-1"));
  for (const part of ["stack_rank5.txt:6", "line 124 in load_next_batch", "in user code", "How to prevent it"]) assert.ok(first.includes(part), part);
});

await check("the picture has every rank and wait", "hang", {}, async (page) => {
  assert.equal(await page.evaluate(howMany(".graph .node")), 8);
  assert.equal(await page.evaluate(howMany(".graph .node.guilty")), 1);
  assert.equal(await page.evaluate(howMany(".graph .edge")), 7);
  assert.ok((await page.evaluate(text(".waitlist"))).includes("ranks 4, 6 and 7 wait for rank 5"));
});

await check("the rank table sorts and filters", "hang", {}, async (page) => {
  const ranks = `[...document.querySelectorAll("#ranks tbody tr")].map((row) => row.cells[0].innerText).join()`;
  assert.equal(await page.evaluate(ranks), "5,0,1,2,3,4,6,7", "guilty first");
  await page.evaluate('document.querySelector("#ranks th button").click()');
  assert.equal(await page.evaluate(ranks), "0,1,2,3,4,5,6,7");
  await page.evaluate('document.querySelector("#ranks th button").click()');
  assert.equal(await page.evaluate(ranks), "7,6,5,4,3,2,1,0");
  assert.equal(await page.evaluate('document.querySelector("#ranks th").getAttribute("aria-sort")'), "descending");
  await page.evaluate(`(() => { const box = document.querySelector("#ranks input"); box.value = "LOAD_next"; box.dispatchEvent(new Event("input")); })()`);
  assert.equal(await page.evaluate(ranks), "5");
  assert.equal(await page.evaluate(text("#ranks .controls .status")), "1 of 8 ranks");
});

await check("the grid obeys the keyboard", "hang", {}, async (page) => {
  await page.evaluate('document.querySelector(".grid canvas").focus()');
  for (const key of ["Home", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight"]) await page.press(key);
  assert.match(await page.evaluate(text(".readout")), /^Rank 5 on node-b: at fault, .*load_next_batch/);
  await page.press("Enter");
  assert.equal(await page.evaluate(howMany("#ranks tbody tr")), 1);
});

await check("pointing at a rank tells about it", "hang", {}, async (page) => {
  const place = await page.evaluate(`(() => { const node = document.querySelector(".node.guilty"); node.scrollIntoView({block: "center"});
    const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()`);
  await page.moveMouse(...place);
  const card = await page.evaluate(text(".hover"));
  assert.ok(card.includes("Rank 5 on node-b") && card.includes("load_next_batch"), card);
});

await check("hostile evidence stays text", "hostile", {}, async (page) => {
  assert.equal(await page.evaluate("document.title"), "Tacet: hang");
  assert.equal(await page.evaluate(howMany("script")), 2, "the report's own two");
  assert.equal(await page.evaluate(howMany("img, iframe, [onerror], [onclick]")), 0);
  assert.equal(await page.evaluate("({}).polluted === undefined && Object.prototype.toString.call({})"), "[object Object]");
  const whole = await page.evaluate("document.body.innerText");
  assert.ok(whole.includes("</script><script>document.title='owned'</script>"), "shown as it stands");
  assert.ok(whole.includes("\\x1b[31mred") && whole.includes("\\u202e") && whole.includes("\\u2028"), "hidden characters are made visible");
  assert.ok(!/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u2028\u202e]/.test(whole), "none is left");
});

await check("the policy stops a script that got in", "hang", {}, async (page) => {
  await page.evaluate(`(() => { const bad = document.createElement("script"); bad.textContent = "document.title = 'owned'"; document.body.append(bad); })()`);
  assert.equal(await page.evaluate("document.title"), "Tacet: hang");
  assert.equal(page.complaints.length, 1);
  assert.match(page.complaints.pop(), /Content Security Policy/);
});

await check("without scripts the text report shows", "hostile", {scripts: false}, async (page) => {
  const whole = await page.evaluate("document.querySelector('main').textContent");
  assert.ok(whole.includes("HANG  rank 5") && whole.includes("What to do now"));
  assert.equal(await page.evaluate(howMany("main img, main script")), 0);
});

await check("a healthy report is short", "healthy", {}, async (page) => {
  assert.ok((await page.evaluate(text("#verdict"))).startsWith("HEALTHY"));
  assert.equal(await page.evaluate(howMany("#findings, .graph, #open")), 0);
});

await check("an empty report is no error", "empty", {}, async (page) => {
  assert.ok((await page.evaluate(text("#verdict"))).startsWith("UNDETERMINED"));
});

await check("sixteen thousand ranks stay quick", "ranks16384", {}, async (page) => {
  assert.ok(await page.evaluate(howMany(".graph .node")) <= 64);
  assert.ok(await page.evaluate(howMany("*")) < 6000, "only a page of rows is built");
  assert.match(await page.evaluate('document.querySelector(".grid canvas").getAttribute("aria-label")'), /^Grid of 16,384 ranks: 1 at fault/);
  const started = Date.now();
  await page.evaluate(`(() => { const box = document.querySelector("#ranks input"); box.value = "node-682"; box.dispatchEvent(new Event("input")); })()`);
  assert.equal(await page.evaluate(howMany("#ranks tbody tr")), 8);
  assert.ok(Date.now() - started < 5000, "filtering is quick");
});

for (const name of ["hang", "hostile", "ranks64", "ranks16384"])
  for (const width of [360, 760, 1600])
    await check(`${name} fits ${width} columns of pixels`, name, {width, theme: width === 760 ? "dark" : "light"}, async (page) => {
      const over = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth");
      assert.ok(over <= 0, over + " pixels too wide");
    });

await check("on paper everything is open and dark on light", "hang", {media: "print", theme: "dark"}, async (page) => {
  await page.evaluate('dispatchEvent(new Event("beforeprint"))');
  assert.equal(await page.evaluate(howMany("details:not([open])")), 0);
  assert.equal(await page.evaluate("getComputedStyle(document.body).backgroundColor"), "rgb(255, 255, 255)");
  assert.equal(await page.evaluate("getComputedStyle(document.body).color"), "rgb(29, 28, 26)");
});

await finish();
