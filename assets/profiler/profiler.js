// WebLLMProfiler measures an app's own use of WebLLM from inside its page: memory over time, tokens, speed, and how long the
// page did not answer. README.md beside it says how it is used, and what a page cannot measure. `llmparity profiler` wrote it.

import { ledger } from "../page/ledger.js"; // must precede everything that uses WebGPU
import * as health from "../page/health.js";
import { pipelineOf, watchTokens } from "./tokens.js";

const now = () => performance.timeOrigin + performance.now();
const MiB = 2 ** 20;

// Memory of the samples: an hour at the shortest interval is about 700,000.
const mostSamples = 1_000_000;

// The ledger and the longest block are the page's, so only one profiler of a page measures at a time.
let measuring;

// iso is a time with microseconds, as in llmparity's records.
function iso(ms) {
  const whole = Math.floor(ms);
  const micros = String(Math.floor((ms - whole) * 1000)).padStart(3, "0");
  return new Date(whole).toISOString().replace("Z", `${micros}Z`);
}

const mebi = (bytes) => (bytes === undefined ? undefined : bytes / MiB);
const cell = (v) => (typeof v === "number" ? String(Math.round(v * 1e6) / 1e6) : v ?? "");

// quoted is a field of CSV. A zero byte would make the file binary.
function quoted(v) {
  const text = String(v).replaceAll("\0", "\ufffd");
  return /[",\r\n]/.test(text) || text !== text.trim() ? `"${text.replaceAll('"', '""')}"` : text;
}

// Columns of the CSV: the first five, and the heap's, are those of llmparity's other tools. A page knows no process.
const columns = {
  timestamp: (s) => s.timestamp, label: (s) => s.label, pid: () => "", rss_mb: () => "", vms_mb: () => "",
  heap_used_mb: (s) => s.heap_used_mb, heap_total_mb: (s) => s.heap_total_mb, gpu_mb: (s) => s.gpu_mb,
  gpu_peak_mb: (s) => s.gpu_peak_mb, wasm_mb: (s) => s.wasm_mb, phase: (s) => s.phase, tokens: (s) => s.tokens,
};

// imported is WebLLM's module. The literal name is for bundlers, and for import maps.
function imported(webllm) {
  if (webllm === undefined) return import("@mlc-ai/web-llm");
  return typeof webllm === "string" ? import(/* webpackIgnore: true */ /* @vite-ignore */ webllm) : webllm;
}

// guarded calls a function of the app's. What it throws is the app's, and must not end a measurement.
function guarded(call, ...args) {
  try {
    call?.(...args);
  } catch (e) {
    (globalThis.reportError ?? console.error)(e);
  }
}

function positive(name, v) {
  if (!(Number.isFinite(v) && v > 0)) throw new RangeError(`${name} is ${v}: it must be a number above 0`);
  return v;
}

export class WebLLMProfiler {
  #options;
  #engine; // what generates
  #handed; // the app's own engine, which is never unloaded
  #model; // its id
  #label;
  #interval;
  #samples = [];
  #lost = 0; // samples beyond the most
  #completions = [];
  #load;
  #phase = "baseline";
  #tokens = 0; // of the completion in progress or the last one
  #current; // the completion in progress
  #unwatch; // ends the watch over tokens
  #unseen; // why tokens are not seen one by one
  #notes = new Set();
  #cost = { ms: 0, over: 0 }; // of sampling, and the time over which it sampled
  #timer;

  constructor(model, options = {}) {
    const { samplingInterval = 100, label, engineConfig } = options;
    if (typeof model === "string" && model.trim()) this.#model = model;
    else if (typeof model?.completions?.create === "function") this.#handed = this.#engine = model;
    else throw new TypeError("the first argument must be the id of a model, or an engine of WebLLM");
    if (this.#handed && engineConfig) throw new TypeError("engineConfig is for an engine that the profiler makes");
    this.#interval = Math.min(positive("samplingInterval", samplingInterval), 2 ** 31 - 1); // a longer timer has no delay at all
    this.#options = options;
    this.#label = label === undefined ? undefined : String(label);
  }

  // initialize loads the model, or finds the one that the handed engine has.
  async initialize({ signal } = {}) {
    signal?.throwIfAborted();
    if (this.#unwatch || this.#unseen) throw new Error("the profiler is initialized already");
    if (this.#handed) this.#take();
    else {
      await this.#measured("load", async (figures) => {
        await this.#start(signal);
        this.#load = figures;
      });
    }
    try {
      this.#unwatch = watchTokens(pipelineOf(this.#engine, this.#model), (id) => this.#sampled(id), (ids) => this.#prompted(ids));
    } catch (e) {
      this.#unseen = this.#engine.worker ? "the engine runs in a worker" : e.message;
    }
  }

  // take finds the model of a handed engine.
  #take() {
    const ids = [...(this.#handed.loadedModelIdToPipeline?.keys() ?? this.#handed.modelId ?? [])];
    this.#model = this.#options.model ?? ids[0];
    if (!ids.includes(this.#model)) {
      throw new Error(`the engine has not loaded ${this.#model ?? "a model"}: await its reload() first`);
    }
    if (ids.length > 1 && !this.#options.model) {
      throw new Error(`the engine has ${ids.length} models: choose one with the option model`);
    }
    this.#notes.add("the load was not measured, because the engine was handed in");
    this.#phase = "idle";
    this.#sample();
  }

  // start makes an engine and loads the model. A cancelled load leaves nothing.
  async #start(signal) {
    const { webllm, engineConfig, chatOptions } = this.#options;
    const { MLCEngine } = await imported(webllm);
    if (typeof MLCEngine !== "function") throw new TypeError("the option webllm is no module with MLCEngine");
    const engine = new MLCEngine(engineConfig);
    let cancel;
    const cancelled = new Promise((_, reject) => {
      cancel = () => reject(signal.reason);
      signal?.addEventListener("abort", cancel, { once: true });
      if (signal?.aborted) cancel();
    });
    const reloaded = engine.reload(this.#model, chatOptions);
    try {
      await Promise.race([reloaded, cancelled]);
    } catch (e) {
      const free = () => engine.unload().catch(() => {}); // the first error counts
      free(); // ends downloads
      reloaded.then(free, free); // what the load had not yet allocated
      throw e;
    } finally {
      signal?.removeEventListener("abort", cancel);
    }
    this.#engine = engine;
  }

  // measured samples memory while something runs, and watches the page.
  async #measured(phase, run) {
    if (measuring) throw new Error("a profiler of this page is measuring already");
    measuring = this;
    if (this.#samples.length === 0) this.#sample();
    this.#phase = phase;
    const begin = now();
    this.#timer = setInterval(() => this.#sample(), this.#interval);
    health.watch();
    const figures = {};
    this.#sample();
    try {
      return await run(figures);
    } finally {
      clearInterval(this.#timer);
      this.#sample();
      const end = now(), [block] = health.longest([[begin, end]]);
      Object.assign(figures, { duration_ms: end - begin, longest_block_ms: block ? block[1] - block[0] : 0 });
      this.#cost.over += end - begin;
      this.#phase = "idle";
      measuring = undefined;
    }
  }

  // sample reads what a page may read, which takes some microseconds.
  #sample() {
    const began = performance.now();
    const heap = performance.memory, wasm = ledger.wasm();
    const [at, live, , highest] = ledger.brief();
    const sample = {
      timestamp: iso(at), t_ms: at, label: this.label, phase: this.#phase, tokens: this.#tokens,
      heap_used_mb: mebi(heap?.usedJSHeapSize), heap_total_mb: mebi(heap?.totalJSHeapSize),
      gpu_mb: this.#sees() ? mebi(live) : undefined, gpu_peak_mb: this.#sees() ? mebi(highest) : undefined,
      wasm_mb: mebi(wasm.bytes),
    };
    if (this.#samples.length < mostSamples) this.#samples.push(sample);
    else this.#lost++;
    this.#cost.ms += performance.now() - began;
    guarded(this.#options.onSample, sample);
  }

  // sees reports whether the engine's WebGPU memory is this thread's.
  #sees = () => Boolean(globalThis.GPUDevice) && !this.#engine?.worker;

  #sampled(id) {
    const run = this.#current;
    if (!run) return; // the app's own use of the engine
    run.ids.push(id);
    this.#count(run, run.ids.length);
    if (run.signal?.aborted) this.#engine.interruptGenerate(); // WebLLM forgets an interrupt before the first token
  }

  #prompted(ids) {
    if (this.#current) this.#current.prompt = ids.length;
  }

  // count takes the number of tokens so far, which came now.
  #count(run, count) {
    run.times.push(now());
    this.#tokens = count;
    guarded(this.#options.onToken, count);
  }

  // complete generates at most max_gen_len tokens after a prompt, at temperature 0. What else is given goes to WebLLM.
  async complete(prompt, { max_gen_len = 128, signal, ...request } = {}) {
    signal?.throwIfAborted();
    if (!this.#unwatch && !this.#unseen) throw new Error("await initialize() first");
    positive("max_gen_len", max_gen_len);
    const run = { ids: [], times: [], signal };
    return this.#measured("measure", async (figures) => {
      this.#current = run;
      this.#tokens = 0;
      const stop = () => this.#engine.interruptGenerate();
      signal?.addEventListener("abort", stop, { once: true });
      run.sent = now();
      try {
        const { text, finish, usage } = await this.#stream(run, {
          prompt, model: this.#model, temperature: 0, ...request, max_tokens: max_gen_len,
          stream: true, stream_options: { include_usage: true },
        });
        return Object.assign(figures, { text, finish_reason: finish, usage });
      } finally {
        signal?.removeEventListener("abort", stop);
        this.#current = undefined;
        this.#completions.push(Object.assign(figures, this.#result(run, figures.usage), { aborted: Boolean(signal?.aborted) }));
        signal?.throwIfAborted();
      }
    });
  }

  async #stream(run, request) {
    let text = "", finish, usage, chunks = 0;
    for await (const chunk of await this.#engine.completions.create(request)) {
      const [choice] = chunk.choices;
      text += choice?.text ?? "";
      finish = choice?.finish_reason ?? finish;
      usage = chunk.usage ?? usage;
      if (this.#unseen && choice?.text) this.#count(run, ++chunks);
      if (run.signal?.aborted) this.#engine.interruptGenerate();
    }
    return { text, finish, usage };
  }

  // result has the figures of a completion. If tokens are not seen, their number is WebLLM's, and there is no speed of ours.
  #result({ ids, times, sent, prompt }, usage) {
    if (this.#unseen) this.#tokens = usage?.completion_tokens ?? times.length;
    const first = times[0], last = times.at(-1), seen = !this.#unseen;
    return {
      tokens: this.#tokens, prompt_tokens: prompt ?? usage?.prompt_tokens,
      token_ids: seen ? ids : undefined, token_times_ms: times.map((at) => at - sent),
      ttft_ms: first && first - sent,
      decode_tps: seen && times.length > 1 ? (times.length - 1) / (last - first) * 1000 : undefined,
    };
  }

  get label() { return this.#label ?? this.#model ?? "model"; }

  getSamples() { return this.#samples.map((s) => ({ ...s })); }

  // summary has the figures so far, and says what is not among them.
  summary() {
    const heaps = this.#samples.map((s) => s.heap_used_mb).filter((v) => v !== undefined);
    const { figures } = ledger.read();
    const most = (values) => values.reduce((a, b) => Math.max(a, b), 0);
    return {
      model: this.#model, label: this.label, load: this.#load, completions: this.#completions.map((c) => ({ ...c })),
      heap: heaps.length ? { baseline_mb: heaps[0], peak_mb: most(heaps) } : undefined,
      ledger: this.#sees() ? figures : undefined,
      wasm: ledger.wasm(),
      sampling: {
        interval_ms: this.#interval, samples: this.#samples.length, dropped: this.#lost, cost_ms: this.#cost.ms,
        share: this.#cost.over ? this.#cost.ms / this.#cost.over : 0,
      },
      cannot: [...this.#cannot(heaps)],
    };
  }

  // cannot says what is not measured here, and why.
  *#cannot(heaps) {
    yield "memory of processes and CPU time: no page may read them; llmparity watch does";
    if (!heaps.length) yield "JavaScript heap: only Chrome and its relatives report it";
    else if (heaps.length > 20 && new Set(heaps).size === 1) {
      yield "JavaScript heap: the browser reports the same value all the time; start Chrome with --enable-precise-memory-info";
    }
    if (!globalThis.GPUDevice) yield "WebGPU memory: this browser offers no WebGPU to this page";
    else if (!this.#sees()) yield "WebGPU memory: the engine runs in a worker, and this module does not";
    else yield "memory of the GPU driver: the ledger has what WebGPU was asked for";
    if (this.#handed) yield "WebGPU memory allocated before this module was imported";
    if (this.#unseen) yield `each token: ${this.#unseen}; tokens are WebLLM's count, times are those of its chunks`;
    if (!globalThis.crossOriginIsolated) yield "times below 0.1 ms: the page is not cross-origin isolated";
    yield* this.#notes;
  }

  toCSV() {
    const rows = this.#samples.map((s) => Object.values(columns).map((of) => quoted(cell(of(s)))).join(","));
    return [Object.keys(columns).join(","), ...rows, ""].join("\n");
  }

  // downloadCSV offers the samples as a file.
  downloadCSV(name = `${this.label}.csv`) {
    const link = document.createElement("a");
    const url = URL.createObjectURL(new Blob([this.toCSV()], { type: "text/csv" }));
    link.href = url;
    link.download = name.replace(/[^\p{L}\p{N}._-]+/gu, "-").replace(/^\.+/, "").slice(-100);
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000); // the download has begun
  }

  // dispose ends the watch over tokens, and unloads an engine that the profiler made.
  async dispose() {
    this.#unwatch?.();
    this.#unwatch = this.#unseen = undefined;
    if (!this.#handed) await this.#engine?.unload();
  }
}
