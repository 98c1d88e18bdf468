// SPDX-License-Identifier: Apache-2.0
// node browser_live.mjs CHROMIUM TACET: the live page of a real server: it renews itself, and says so when it cannot.
import assert from "node:assert/strict";
import {spawn} from "node:child_process";
import {startChromium} from "./chromium.mjs";

const [program, tacet] = process.argv.slice(2);
const server = spawn(tacet, ["serve", "--agents", "127.0.0.1:1", "--listen", "0"], {stdio: ["ignore", "pipe", "inherit"]});
process.on("exit", () => server.kill());
const address = await new Promise((resolve, reject) => {
  server.on("exit", () => reject(new Error("tacet serve ended")));
  server.stdout.on("data", (text) => { const found = /http:\S+/.exec(String(text)); if (found) resolve(found[0]); });
});
const browser = await startChromium(program);
const page = await browser.open(address + "/");

async function waitFor(what, expression) {
  for (const end = Date.now() + 60000; Date.now() < end; await new Promise((done) => setTimeout(done, 100)))
    if (await page.evaluate(expression)) return;
  assert.fail("waited in vain for: " + what);
}

await waitFor("the verdict", 'document.querySelector("#verdict .status")?.innerText.toLowerCase() === "undetermined"');
await waitFor("the agents", 'document.querySelector("#live").innerText.includes("0 of 1 agent answer")');
await waitFor("the agent that fails", '/127\\.0\\.0\\.1:1\\b/.test(document.querySelector("#failing-agents")?.innerText)');
assert.match(await page.evaluate('document.querySelector("#failing-agents").innerText'), /1 agent does not answer[\s\S]*(refused|connect)/i, "with its reason");
const before = await page.evaluate('document.querySelector("#live").innerText');
await waitFor("a renewed time", `document.querySelector("#live").innerText !== ${JSON.stringify(before)}`);
assert.deepEqual(page.complaints, [], "the policy lets the page ask its own server");
assert.ok(page.requests.every((url) => url.startsWith(address)), "and nobody else");
server.removeAllListeners("exit");
server.kill();
await waitFor("the loss of the server", 'document.querySelector("#live").innerText.includes("no answer from the server")');
assert.equal(await page.evaluate('document.querySelector("#verdict .status").innerText.toLowerCase()'), "undetermined", "the last verdict stays");
await browser.close();
console.log("ok    the live page");
