// The page that a person opens: what to measure, and what comes of it. line.js carries out what llmparity asks meanwhile.

import { connect } from "./line.js";
import { plot } from "./plot.js";
import { about, offers } from "./offers.js";

const $ = (id) => document.getElementById(id);
const make = (tag, text, attributes = {}) => {
  const e = document.createElement(tag);
  e.textContent = text;
  for (const [name, value] of Object.entries(attributes)) e.setAttribute(name, value);
  return e;
};
const MiB = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

let measuring = false, stopping, gpu = true, times = []; // of tokens in this phase
const memory = plot($("chart"));

function say(text, bad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", bad);
}

const note = (text) => {
  if ([...$("notes").children].some((li) => li.textContent === text)) return;
  $("notes").append(make("li", text));
  while ($("notes").children.length > 12) $("notes").firstChild.remove();
};

function busy(is) {
  measuring = is;
  $("start").disabled = is || line.closed;
  $("stop").disabled = !is;
  document.body.dataset.state = is ? "measuring" : "idle";
}

const fill = (select, options) => {
  const was = select.value;
  select.replaceChildren(...options.map(([value, text, disabled]) => make("option", text, { value, ...(disabled && { disabled: "" }) })));
  if (options.some(([value, , disabled]) => value === was && !disabled)) select.value = was;
};

// --- What llmparity sends.
const doing = { baseline: "baseline", load: "load", warmup: "warm-up", measure: "generate", idle: "idle", unload: "unload" };

const hear = {
  hello({ engines, models, plan, runs }) {
    fill($("engine"), engines.map((e) => [e.name, e.title + (e.webgpu && !gpu ? " (needs WebGPU)" : ""), e.webgpu && !gpu]));
    fill($("model"), models.map((name) => [name, name.replace(/^.*[/\\]/, "")]));
    table(runs ?? []);
    $("form").hidden = plan;
    busy(plan);
    say(plan ? "This device takes part: the plan begins." : "Ready.");
  },

  event(e) {
    if (e.kind === "preparing") say(`${e.engine}: ${e.text}`);
    if (e.kind === "launched") {
      memory.begin();
      $("launch").textContent = e.warmup ? "warm-up" : `${e.repetition} of ${e.repetitions}`;
      for (const id of ["tokens", "rate", "text", "block"]) $(id).textContent = "";
    }
    if (e.kind === "phase") {
      $("phase").textContent = doing[e.phase] ?? e.phase;
      memory.phase(doing[e.phase] ?? e.phase);
      say(`${e.engine}: ${doing[e.phase] ?? e.phase}`);
    }
    if (e.kind === "phase") times = [];
    if (e.kind === "scoring") say(`${e.engine}: checking its log-probabilities`);
    if (e.kind === "ended" && e.error) note(`launch ${e.launch}: ${e.error}`);
  },

  text: (text) => { $("text").textContent = text; },
  host(roles) {
    for (const [id, role] of [["renderer", "renderer"], ["gpu", "gpu-process"]]) {
      if (!(role in roles)) continue;
      $(id).textContent = `${roles[role].toFixed(0)} MiB`;
      memory.add({ renderer: "page process, RSS", gpu: "GPU process, RSS" }[id], roles[role]);
    }
  },
  runs: table,
  note,

  async ended({ error }) {
    await stopping; // what it freed is said last
    busy(false);
    $("phase").textContent = "–";
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
    $("ledger").textContent = MiB(bytes);
    $("ledger").dataset.bytes = bytes;
    memory.add("WebGPU memory", bytes / 2 ** 20);
  },
  token(at) {
    times.push(at);
    $("tokens").textContent = times.length;
    const took = (at - times[0]) / 1000;
    $("rate").textContent = took > 0 ? ((times.length - 1) / took).toPrecision(3) : "–";
  },
  wasm(bytes) { $("wasm").textContent = MiB(bytes); memory.add("WebAssembly", bytes / 2 ** 20); },
  heap(bytes) { $("heap").textContent = MiB(bytes); memory.add("JavaScript heap", bytes / 2 ** 20); },
  block(ms) { $("block").textContent = `${Math.max(ms, parseFloat($("block").textContent) || 0).toFixed(0)} ms`; },
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

$("stop").addEventListener("click", () => {
  if (!measuring || stopping) return;
  $("stop").disabled = true;
  say("Stopping …");
  stopping = line.stop().then((bytes) => {
    if (bytes !== undefined) seen.ledger(bytes);
    say(bytes === undefined ? "Stopped. The engine was busy, so its thread was ended, which frees its memory." : `Stopped. WebGPU memory: ${MiB(bytes)}.`);
  });
});

async function send(file) {
  if (!file || measuring) return;
  say(`Sending ${file.name} …`);
  try {
    const answer = await fetch(`model/${encodeURIComponent(file.name)}`, { method: "PUT", body: file });
    if (!answer.ok) throw new Error((await answer.text()).trim());
    const { model } = await answer.json();
    if (![...$("model").options].some((o) => o.value === model)) $("model").append(make("option", model, { value: model }));
    $("model").value = model;
    say(`${model} is ready.`);
  } catch (e) {
    say(e instanceof TypeError ? `${file.name} could not be sent: llmparity refused it or is not there.` : e.message, true);
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

// --- Runs.
const columns = [
  ["decode_tokens_per_s", "Decode, tok/s"], ["ttft_ms", "Time to first token, ms"], ["load_time_ms", "Load, ms"],
  ["peak_pss_mb", "Peak memory, MiB"], ["memory_increase_mb", "Memory increase, MiB"], ["model_weights_mb", "Weights, MiB"],
  ["kv_cache_mb", "KV cache, MiB"], ["longest_block_ms", "Longest block, ms"],
];
const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

function figure(cell, name) {
  const td = make("td", "", { class: "n" });
  if (!(name in cell)) return td;
  td.append(number.format(cell[name]));
  const [low, high] = [cell[`${name}_lo`], cell[`${name}_hi`]];
  if (low && high) td.append(make("small", `${number.format(low)} to ${number.format(high)}`));
  return td;
}

function table(runs) {
  const cells = runs.flatMap((run) => (run.cells?.length ? run.cells : [{}]).map((cell) => [run, cell]));
  const has = columns.filter(([name]) => cells.some(([, cell]) => name in cell));
  $("runs").hidden = cells.length === 0;
  $("none").hidden = cells.length > 0;
  $("runs").tHead.rows[0].replaceChildren(...["Run", "Engine and model", "Launches"].map((t) => make("th", t, { scope: "col" })),
    ...has.map(([, title]) => make("th", title, { scope: "col", class: "n" })), make("th", "Keep", { scope: "col" }));
  $("runs").tBodies[0].replaceChildren(...cells.map(([run, cell]) => {
    const row = make("tr", "");
    const name = make("th", String(run.id), { scope: "row" });
    name.append(make("small", run.who));
    const what = make("td", [cell.engine, cell.model].filter(Boolean).join(", "));
    if (run.error || cell.failures || cell.refused) what.append(make("small", run.error ?? cell.refused ?? cell.failures, { class: "miss" }));
    row.append(name, what, make("td", cell.launches_counted ?? ""), ...has.map(([column]) => figure(cell, column)), keep(run));
    return row;
  }));
}

function keep(run) {
  const td = make("td", "");
  for (const [format, text] of [["csv", "Export CSV"], ["json", "JSON"], ["html", "Report"]]) {
    td.append(make("a", text, { href: `runs/${run.id}/${format}`, download: "", "aria-label": `${text} of run ${run.id}` }));
  }
  const button = make("button", "", { type: "button" });
  const label = () => {
    button.textContent = run.saved ? "Saved" : "Save as a run";
    button.setAttribute("aria-label", `${button.textContent}: ${run.id}`);
    button.disabled = Boolean(run.saved);
  };
  label();
  button.addEventListener("click", async () => {
    button.disabled = true;
    const answer = await fetch(`runs/${run.id}/save`, { method: "POST" }).catch(() => undefined);
    if (!answer?.ok) {
      button.disabled = false;
      return say(answer ? (await answer.text()).trim() : "llmparity is not there.", true);
    }
    run.saved = (await answer.json()).saved;
    label();
    say(`Run ${run.id} is saved in ${run.saved}.`);
  });
  td.append(button);
  return td;
}

// --- What this browser offers is said before anything begins, and then llmparity hears of the page.
about.then(({ webgpu, who }) => {
  gpu = webgpu;
  $("who").textContent = who;
  $("offered").replaceChildren(...offers().map(([has, text]) => make("li", text, has ? {} : { class: "miss" })));
});
busy(false);
