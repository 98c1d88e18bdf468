// SPDX-License-Identifier: Apache-2.0
// @ts-check
// The page of tacet profile: the verdict, what would save most, then the pictures.

const BOUNDS = {"compute-bound": "good", "communication-bound": "bound", "host-bound": "bound", "copy-bound": "bound", "pipeline bubble": "bound"};

// " (95 % interval 0.0 % to 28.9 %)"; nothing where it is not known.
/** @param {number | null} low @param {number | null} high */
const interval = (low, high) => (low === null || high === null ? "" : " (95 % interval " + percent(low) + " to " + percent(high) + ")");

/** @param {ProfileJobAdviceItem} advice */
function adviceItem(advice) {
  return h("li", advice.what + ": ", h("span.gain", (advice.at_most ? "saves at most " : advice.gain_low !== null ? "saves about " : "saves ") + percent(advice.gain) + " of the step" + interval(advice.gain_low, advice.gain_high)), advice.why ? h("p", advice.why) : null);
}

/** @param {ProfilePageJob} job */
function profileVerdict(job) {
  const world = job.world_size > 0 ? job.world_size : job.ranks_seen;
  const node = h("section.verdict." + (BOUNDS[job.verdict] || "calm"),
    h("p.line", h("span.status", job.heading), job.job ? h("span.who", job.job) : null),
    h("h1", unbroken(capitalise(job.headline || "Nothing with times was found."))),
    job.setup ? h("p.setup", job.setup + ".") : null,
    h("dl.facts", job.step_ns > 0 ? fact("Step", describeTime(job.step_ns)) : null, job.steps > 0 ? fact("Recorded steps", job.steps.toLocaleString("en")) : null,
      world > 0 ? fact("Ranks", world.toLocaleString("en")) : null, job.source ? fact("From", job.source) : null,
      figure(job.communication_share) > 0 ? fact("Communication, of the step", percent(job.communication_share)) : null),
    job.advice.length > 0 ? h("div.now", h("h2", "What would save most"), h("ol", job.advice.map(adviceItem))) : null);
  node.id = "verdict";
  return node;
}

/** @param {ProfilePageJob} job */
function notesSection(job) {
  const notes = [...job.remarks];
  if (job.clocks.compared > 1)
    notes.push("The clock" + (job.clocks.compared > 2 ? "s" : "") + " of " + count(job.clocks.compared - 1, "rank") + (job.clocks.compared > 2 ? " were" : " was") + " compared with another rank's; " + (job.clocks.corrected > 0 ? job.clocks.corrected : "none") + " needed correction" + (job.clocks.corrected > 0 ? " (by up to " + describeTime(job.clocks.largest_ns) + ")" : "") +
      "; remaining error up to " + describeTime(job.clocks.worst_error_ns) + ".");
  return notes.length > 0 ? section("remarks", "Remarks", null, list("ul", notes)) : null;
}

function definitionsSection(definitions) {
  const node = h("details.definitions", h("summary", "What every figure means"), h("dl", definitions.map(([name, words]) => [h("dt", name), h("dd", words)])));
  return section("definitions", "Definitions", null, node);
}

/** @param {ProfilePage} content @param {ProfilePageJob} job */
function showJob(content, job) {
  const ranks = job.ranks.map((row) => readRank(job, row));
  const timed = ranks.filter((rank) => rank.step > 0);
  const sections = [
    profileVerdict(job),
    timed.length > 0 && sum(job.mean) > 0 ? budgetSection(job, content.parts, timed) : null,
    job.lateness.length > 0 || job.stragglers.length > 0 ? waitsSection(job) : null,
    timed.length > 1 ? ranksSection(job, content.parts, timed) : null,
    job.steps_drawn.length > 1 ? stepsSection(job, content.parts) : null,
    job.table.length > 0 ? communicationSection(job) : null,
    strategiesSection(job),
    job.memory.length > 0 ? memorySection(job) : null,
    notesSection(job),
    definitionsSection(content.definitions),
  ].filter(Boolean);
  showSections(sections, ["Made by ", h("code", "tacet profile"), ". Times are of the recorded steps; the same as data: ", h("code", "tacet profile --format json")]);
  if (content.jobs.length < 2) return;
  const bar = h("div.choices.jobs-bar", content.jobs.slice(0, 50).map((other, index) => {
    const pick = button(other.job || "job " + (index + 1), () => showJob(content, other));
    pick.setAttribute("aria-pressed", other === job);
    return pick;
  }));
  byId("report").prepend(bar);
}

/** @type {ProfilePage} */
const loaded = readContent();
if (loaded.jobs.length > 0) showJob(loaded, loaded.jobs[0]);
