// SPDX-License-Identifier: Apache-2.0
// Checks of pages in a folder: each opens one, and fails too when the page complains or fetches anything.
import assert from "node:assert/strict";
import {startChromium} from "./chromium.mjs";

export async function openChecks(program, folder) {
  const browser = await startChromium(program);
  let failed = 0;
  return {
    async check(what, name, view, body) {
      const page = await browser.open("file://" + folder + "/" + name + ".html", view);
      try {
        await body(page);
        assert.deepEqual(page.complaints.slice(0, 2), [], "the console is silent");
        assert.deepEqual(page.requests.filter((url) => !url.startsWith("file://")), [], "nothing is fetched");
        console.log("ok    " + what);
      } catch (error) {
        ++failed;
        console.log("FAIL  " + what + "\n      " + error.message.replaceAll("\n", "\n      "));
      }
      await page.close();
    },
    async finish() {
      await browser.close();
      console.log(failed === 0 ? "all well" : failed + " failed");
      process.exit(failed === 0 ? 0 : 1);
    },
  };
}
