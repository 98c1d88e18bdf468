// SPDX-License-Identifier: Apache-2.0
// A headless Chromium spoken to over its own pipe (DevTools protocol on file descriptors 3 and 4), so that no package is
// needed. open(url, view) gives a page: evaluate, press, screenshot, and the complaints the page made.
import {spawn} from "node:child_process";
import {mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";

export async function startChromium(program) {
  const profile = mkdtempSync(join(tmpdir(), "tacet-chromium-"));
  const child = spawn(program, ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--remote-debugging-pipe", "--user-data-dir=" + profile, "about:blank"], {stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"]});
  const [, , , send, receive] = child.stdio;
  const waiting = new Map(), listeners = [];
  let next = 1, rest = "";
  receive.setEncoding("utf8");
  receive.on("data", (chunk) => {
    const messages = (rest + chunk).split("\0");
    rest = messages.pop();
    for (const text of messages) {
      const message = JSON.parse(text);
      const handlers = waiting.get(message.id);
      waiting.delete(message.id);
      if (handlers && message.error) handlers.reject(new Error(message.error.message));
      else if (handlers) handlers.resolve(message.result);
      else for (const listener of listeners) listener(message);
    }
  });
  const call = (method, params = {}, sessionId = undefined) => new Promise((resolve, reject) => {
    waiting.set(next, {resolve, reject});
    send.write(JSON.stringify({id: next++, method, params, sessionId}) + "\0");
  });
  child.on("exit", () => { for (const {reject} of waiting.values()) reject(new Error("Chromium ended")); });
  send.on("error", () => {});
  process.on("exit", () => child.kill());  // a test that dies takes its browser along

  return {
    open: (url, view = {}) => openPage(call, listeners, url, view),
    async close() {
      const gone = new Promise((resolve) => child.once("exit", resolve));
      call("Browser.close").catch(() => {});
      await gone;
      rmSync(profile, {recursive: true, force: true, maxRetries: 5, retryDelay: 100});
    },
  };
}

async function openPage(call, listeners, url, {width = 1280, height = 900, theme = "light", media = "", scripts = true}) {
  const {targetId} = await call("Target.createTarget", {url: "about:blank"});
  const {sessionId} = await call("Target.attachToTarget", {targetId, flatten: true});
  const ask = (method, params) => call(method, params, sessionId);
  const complaints = [], requests = [];
  let loaded;
  const whenLoaded = new Promise((resolve) => { loaded = resolve; });
  listeners.push(({method, params, sessionId: from}) => {
    if (from !== sessionId) return;
    if (method === "Page.loadEventFired") loaded();
    if (method === "Runtime.exceptionThrown") complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    if (method === "Runtime.consoleAPICalled") complaints.push(params.args.map((arg) => arg.value).join(" "));
    if (method === "Log.entryAdded") complaints.push(params.entry.text);
    if (method === "Network.requestWillBeSent") requests.push(params.request.url);
  });
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await ask(domain + ".enable");
  await ask("Emulation.setDeviceMetricsOverride", {width, height, deviceScaleFactor: 1, mobile: false});
  if (!scripts) await ask("Emulation.setScriptExecutionDisabled", {value: true});
  await ask("Emulation.setEmulatedMedia", {media, features: [{name: "prefers-color-scheme", value: theme}]});
  await ask("Page.navigate", {url});
  await whenLoaded;

  return {
    complaints,
    requests,
    async evaluate(expression) {
      const {result, exceptionDetails} = await ask("Runtime.evaluate", {expression, returnByValue: true, awaitPromise: true});
      if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
      return result.value;
    },
    async press(key) {
      for (const type of ["keyDown", "keyUp"]) await ask("Input.dispatchKeyEvent", {type, key, code: key});
    },
    async moveMouse(x, y) { await ask("Input.dispatchMouseEvent", {type: "mouseMoved", x, y}); },
    async screenshot(file, whole = true) {
      const {cssContentSize} = await ask("Page.getLayoutMetrics");
      const clip = whole ? {...cssContentSize, scale: 1} : undefined;
      const {data} = await ask("Page.captureScreenshot", {format: "png", captureBeyondViewport: whole, clip});
      writeFileSync(file, Buffer.from(data, "base64"));
    },
    close: () => call("Target.closeTarget", {targetId}),
  };
}
