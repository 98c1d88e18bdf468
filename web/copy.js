// SPDX-License-Identifier: Apache-2.0
// @ts-check
// Things to paste elsewhere: commands out of sentences.

// Programs whose arguments are recognised behind them; a sentence names other things that look alike.
const PROGRAMS = new Set(["tacet", "nvidia-smi", "dcgmi", "dmesg", "df", "free", "quota", "journalctl", "systemctl", "ibstat", "ibv_devinfo", "perfquery", "ethtool", "ip", "ss", "ping", "nc", "py-spy",
  "gdb", "kubectl", "sacct", "scontrol", "ulimit", "lspci", "lsmod", "sysctl", "numactl", "iperf3", "ib_write_bw", "mlxlink", "rdma", "lctl"]);
const SUBCOMMANDS = {tacet: /^[a-z-]+$/, "nvidia-smi": /^(topo|nvlink|dmon)$/, ip: /^(link|route|addr|a)$/, systemctl: /^(status|enable|start|restart)$/, kubectl: /^(describe|logs|get)$/,
  dcgmi: /^(diag|health|nvlink)$/, "py-spy": /^(dump|record|top)$/, scontrol: /^show$/, rdma: /^(link|dev)$/, lctl: /^(ping|list_nids|get_param)$/};
// What may stand behind a subcommand: "show node NODE", "status nvidia-fabricmanager".
const OBJECTS = {kubectl: /^(nodes?|pods?|events)$/, scontrol: /^(node|job|config)$/, systemctl: /^[a-z]+[a-z-]*-[a-z-]+$/, ip: /^get$/};
// Words of the sentence around a command.
const PROSE = /^(on|in|of|and|or|to|for|must|the|by|with|then|before|until|at|is|shows?|tells?|says?|lists?|prints?|names?|finds?|writes?)$/;

// Where an argument may stand: an option, its value, a path, a pipe, something quoted, a placeholder in capitals.
function isArgument(word, before, program) {
  if (/^-{1,2}[A-Za-z0-9]/.test(word) || word === "|" || /^['"/]/.test(word) || /^[A-Z][A-Z_]+$/.test(word)) return true;
  if (before === program) return SUBCOMMANDS[program]?.test(word) ?? false;
  if (before === "|") return /^(grep|head|tail|sort|less)$/.test(word);
  if (SUBCOMMANDS[program]?.test(before) && OBJECTS[program]?.test(word)) return true;
  return (/^-/.test(before) || before === "grep") && !PROSE.test(word) && /^[\w.,:=/-]+$/.test(word);
}

// The length of the command that begins `text`, 0 where none does.
/** @param {string} text */
function commandLength(text) {
  const assignment = /^[A-Z][A-Z0-9_]{3,}=[\w./:,+-]*[\w/+-]/.exec(text);
  if (assignment) return assignment[0].length;
  const program = /^[a-z][a-z0-9_-]*/.exec(text)?.[0] ?? "";
  if (!PROGRAMS.has(program)) return 0;
  let length = program.length, before = program;
  for (;;) {
    const word = /^ ('[^']*'|"[^"]*"|[^\s]+)/.exec(text.slice(length));
    if (!word) break;
    const bare = /^['"]/.test(word[1]) ? word[1] : word[1].replace(/[,;:.)'"]+$/, "");
    if (!isArgument(bare, before, program)) break;
    length += 1 + bare.length;
    before = bare;
    if (bare.length < word[1].length) break;  // a comma or a full stop ends it
  }
  while (/[ |]$/.test(text.slice(0, length))) --length;  // a pipe into something unknown
  return length > program.length || /^(ibstat|dmesg|lsmod)$/.test(program) ? length : 0;
}

// [{text, command: whether it can be pasted, code: whether it is code of another kind}], in order.
/** @param {string} sentence */
function splitCommands(sentence) {
  /** @type {{text: string, command: boolean, code: boolean}[]} */
  const parts = [];
  let plain = "";
  const end = () => { if (plain) parts.push({text: plain, command: false, code: false}); plain = ""; };
  for (let at = 0; at < sentence.length; ) {
    const quoted = /^`([^`]+)`/.exec(sentence.slice(at));
    const fresh = at === 0 || /[\s("'`]/.test(sentence[at - 1]);
    const length = quoted ? quoted[1].length : fresh ? commandLength(sentence.slice(at)) : 0;
    if (length === 0) {
      plain += sentence[at++];
      continue;
    }
    end();
    const text = quoted ? quoted[1] : sentence.slice(at, at + length);
    const whole = !quoted || commandLength(text) === text.length;
    parts.push({text, command: whole, code: !whole});
    at += quoted ? quoted[0].length : length;
  }
  end();
  return parts;
}

// A file opened from disk is no secure context in every browser: the old way is the fallback.
/** @param {string} text */
function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
  const box = document.createElement("textarea");
  box.value = text;
  box.className = "offscreen";
  document.body.append(box);
  box.select();
  const done = document.execCommand("copy");
  box.remove();
  return done ? Promise.resolve() : Promise.reject(new Error("the browser does not allow the page to copy"));
}

/** @param {string} text */
function copyButton(text, label, what) {
  const node = button(label, () => copyText(text).then(() => tell("Copied"), () => tell("Select and copy it by hand")));
  let back = 0;
  function tell(word) {
    node.textContent = word;
    clearTimeout(back);
    back = window.setTimeout(() => { node.textContent = label; }, 1500);
  }
  node.className = "copy";
  node.setAttribute("aria-label", "Copy " + what);
  return node;
}

/** @param {string} text */
function command(text) { return h("span.command", h("code", text), copyButton(text, "Copy", "the command " + text)); }

// A sentence in which commands can be copied.
/** @param {string} sentence */
function withCommands(sentence) {
  return splitCommands(clean(sentence)).map((part) => (part.command ? command(part.text) : part.code ? h("code", part.text) : part.text));
}
