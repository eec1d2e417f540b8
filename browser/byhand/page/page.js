// The page that a person opens: what to measure, and what comes of it. line.js carries out what llmparity asks meanwhile.

import { connect } from "./line.js";
import { plot } from "./plot.js";
import { about, offers } from "./offers.js";
import { make, tabulate } from "./runs.js";

const $ = (id) => document.getElementById(id);
const MiB = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

let measuring = false, stopping, has = {}, titles = new Map(); // of engines
let first = 0, tokens = 0, block = 0; // of this phase
const shown = new Map(); // what is shown with the next drawing, because each one takes CPU time from what is measured
const memory = plot($("chart"), () => {
  for (const [id, text] of shown) $(id).textContent = text;
  shown.clear();
});

function show(id, text) {
  shown.set(id, text);
  memory.soon();
}

function say(text, bad = false) {
  shown.delete("status");
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

const note = (text) => {
  if ([...$("notes").children].some((li) => li.textContent === text)) return;
  $("notes").append(make("li", text));
  while ($("notes").children.length > 12) $("notes").firstChild.remove();
};

function busy(is) {
  const focused = [$("start"), $("stop")].includes(document.activeElement);
  measuring = is;
  $("start").disabled = is || line.closed;
  $("stop").disabled = !is;
  if (focused) $(is ? "stop" : "start").focus(); // a disabled button loses it
  document.body.dataset.state = is ? "measuring" : "idle";
}

const fill = (select, options) => {
  const was = select.value;
  select.replaceChildren(...options.map(([value, text, disabled]) => make("option", text, { value, ...(disabled && { disabled: "" }) })));
  if (options.some(([value, , disabled]) => value === was && !disabled)) select.value = was;
};

// --- What llmparity sends.
const doing = { baseline: "baseline", load: "load", warmup: "warm-up", measure: "generate", idle: "idle", unload: "unload" };

const needs = { webgpu: "WebGPU", "shader-f16": "float16 shaders" };

const hear = {
  hello({ engines, models, plan, runs }) {
    titles = new Map(engines.map(({ name, title }) => [name.split(" ")[0], title.split(",")[0]]));
    fill($("engine"), engines.map((e) => {
      const lacks = e.needs?.find((feature) => !has[feature]);
      return [e.name, e.title + (lacks ? ` (needs ${needs[lacks]})` : ""), lacks];
    }));
    fill($("model"), models.map((name) => [name, name.replace(/^.*[/\\]/, "")]));
    tabulate(runs ?? [], say);
    $("form").hidden = plan;
    busy(plan);
    say(plan ? "This device takes part. The plan begins." : "Ready.");
  },

  event(e) {
    const name = titles.get(e.engine) ?? e.engine;
    if (e.kind === "preparing" && titles.has(e.engine)) say(`${name}: ${e.text}`);
    else if (e.kind === "preparing") note(`${name}: ${e.text}`); // about the machine
    if (e.kind === "launched") {
      $("memory").hidden = false;
      memory.begin();
      block = 0;
      show("launch", e.warmup ? "warm-up" : `${e.repetition} of ${e.repetitions}`);
      for (const id of ["tokens", "rate", "text", "block"]) show(id, "");
    }
    if (e.kind === "phase") {
      const phase = doing[e.phase] ?? e.phase;
      memory.phase(phase);
      show("phase", phase);
      show("status", `${name}: ${phase}`);
      tokens = 0;
    }
    if (e.kind === "scoring") say(`${name}: checking its log-probabilities`);
    if (e.kind === "ended" && e.error && !stopping) note(`launch ${e.launch}: ${e.error}`);
  },

  text: (text) => show("text", text),
  host(roles) {
    for (const [id, role, name] of [["renderer", "renderer", "page process, RSS"], ["gpu", "gpu-process", "GPU process, RSS"]]) {
      if (!(role in roles)) continue;
      show(id, `${roles[role].toFixed(0)} MiB`);
      memory.add(name, roles[role]);
    }
  },
  runs: (runs) => tabulate(runs, say),
  note,

  async ended({ error }) {
    await stopping; // what it freed is said last
    busy(false);
    shown.set("phase", "–");
    memory.now();
    if (stopping) stopping = undefined;
    else say(error ? error : "Done.", Boolean(error));
  },

  closed() {
    busy(false);
    say("The connection to llmparity ended. This page connects again by itself.", true);
  },
};

// --- What the engine's page read of itself on the way.
const seen = {
  ledger(bytes) {
    show("ledger", MiB(bytes));
    memory.add("WebGPU memory", bytes / 2 ** 20);
  },
  tokens(times) {
    if (tokens === 0) [first] = times;
    tokens += times.length;
    const took = (times.at(-1) - first) / 1000;
    show("tokens", String(tokens));
    show("rate", took > 0 ? ((tokens - 1) / took).toPrecision(3) : "–");
  },
  wasm(bytes) { show("wasm", MiB(bytes)); memory.add("WebAssembly", bytes / 2 ** 20); },
  heap(bytes) { show("heap", MiB(bytes)); memory.add("JavaScript heap", bytes / 2 ** 20); },
  block(ms) {
    block = Math.max(block, ms);
    show("block", `${block.toFixed(0)} ms`);
  },
};

const line = connect(hear, seen, about);

// --- The form.
$("form").addEventListener("submit", (e) => {
  e.preventDefault();
  if (measuring || line.closed) return;
  busy(true);
  $("notes").replaceChildren();
  say("Starting …");
  line.send({ start: {
    engine: $("engine").value, model: $("model").value, prompt: $("prompt").value, thread: $("thread").value,
    maxTokens: $("maxTokens").valueAsNumber, context: $("context").valueAsNumber, launches: $("launches").valueAsNumber,
  } });
});

function stop() {
  if (!measuring || stopping) return;
  say("Stopping …");
  stopping = line.stop().then((bytes) => {
    if (bytes !== undefined) seen.ledger(bytes);
    say(bytes === undefined ? "Stopped. The engine was busy, so its thread was ended, which frees its memory." : `Stopped. WebGPU memory: ${MiB(bytes)}.`);
  });
}

$("stop").addEventListener("click", stop);
addEventListener("keydown", ({ key }) => { if (key === "Escape") stop(); });

async function send(file) {
  if (!file) return;
  if (measuring) return note("Stop the measurement before you send a file.");
  say(`Sending ${file.name} …`);
  try {
    const answer = await fetch(`model/${encodeURIComponent(file.name)}`, { method: "PUT", body: file });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const { model } = await answer.json();
    if (![...$("model").options].some((o) => o.value === model)) $("model").append(make("option", model, { value: model }));
    $("model").value = model;
    say(`${model} is ready.`);
  } catch (e) {
    say(e instanceof TypeError ? `${file.name} could not be sent: llmparity refused it or does not answer.` : e.message, true);
  }
}

$("file").addEventListener("change", () => send($("file").files[0]));
for (const name of ["dragover", "dragleave", "drop"]) {
  $("drop").addEventListener(name, (e) => {
    e.preventDefault();
    $("drop").classList.toggle("over", name === "dragover");
    if (name === "drop") send(e.dataTransfer.files[0]);
  });
}

// --- What this browser offers is said before anything begins, and then llmparity hears of the page.
about.then(({ features, who }) => {
  has = features;
  $("who").textContent = who;
  $("offered").replaceChildren(...offers().map(([has, text]) => make("li", text, has ? {} : { class: "miss" })));
});
busy(false);
