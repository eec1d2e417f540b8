// The functions that llmparity calls on WebLLM's thread: the page's or a worker's. Times are milliseconds of that
// thread's own clock, performance.timeOrigin + performance.now(); the host measures the difference to its own.

import { ledger } from "./ledger.js"; // must precede everything that uses WebGPU
import { adapter } from "./adapter.js";

const now = () => performance.timeOrigin + performance.now();

// The host adds this binding to the thread; without a host it is missing.
const tell = (event) => globalThis.llmparityEvent?.(JSON.stringify(event));

let show = () => {}; // displays a status text
let webllm; // the bundle's module
let engine;
let pipeline; // of the loaded model, a private part of the engine
let context; // window in tokens
const devices = []; // WebGPU devices that WebLLM asked for
let unloading = false; // a device destroyed meanwhile is not lost
let givenUp = false;
let marks = {}; // start of each load stage
let run; // the generation in progress

// start imports WebLLM; say displays its status.
export async function start(say) {
  show = say;
  try {
    webllm = await import("./dist/web-llm.js");
  } catch (e) {
    throw new Error(`WebLLM's bundle (dist/web-llm.js) cannot be imported: ${e.message}`);
  }
  if (typeof webllm.MLCEngine !== "function") throw new Error("the WebLLM module has no class MLCEngine");
  show("Ready: no model is loaded.");
}

// watchDevices wraps the request of WebGPU devices, because WebLLM does not expose its device, its loss or its errors.
// If a buffer cannot be allocated, WebLLM destroys the device and logs a line on the console.
function watchDevices() {
  if (!globalThis.GPUAdapter) return;
  const requestAdapter = GPU.prototype.requestAdapter;
  GPU.prototype.requestAdapter = function (...args) {
    mark("device");
    return requestAdapter.apply(this, args);
  };
  const requestDevice = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (wanted) {
    // llmparity's kernels for software adapters need subgroups. WebLLM requests them itself only since 0.2.83.
    const requiredFeatures = [...(wanted?.requiredFeatures ?? [])];
    if (this.features.has("subgroups")) requiredFeatures.push("subgroups");
    const device = await requestDevice.call(this, { ...wanted, requiredFeatures });
    mark("tokenizer");
    devices.push(device);
    watchDevice(device);
    return device;
  };
}
watchDevices();

function watchDevice(device) {
  const gpuError = (error) => error && tell({ gpu: { kind: error.constructor.name, message: error.message } });
  device.lost.then(({ reason, message }) => unloading || tell({ lost: { reason, message } }));
  device.addEventListener("uncapturederror", ({ error }) => gpuError(error));
  const pop = device.popErrorScope;
  device.popErrorScope = async function () {
    const error = await pop.call(this);
    gpuError(error);
    return error;
  };
  const create = device.createComputePipelineAsync;
  device.createComputePipelineAsync = function (...args) {
    mark("shaders");
    return create.apply(this, args);
  };
}

function watchInstantiate() {
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = function (...args) {
    mark("wasm");
    return instantiate.apply(this, args);
  };
}
watchInstantiate();

// mark records when a stage first begins.
function mark(stage) {
  if (stage in marks) return;
  marks[stage] = now();
  ledger.enter(stage);
}

// WebLLM reports its progress as text. These texts begin the stages that are not visible otherwise.
function progress({ text }) {
  if (/^Start to fetch params/.test(text)) mark("download");
  else if (/^Fetching param cache\[(\d+)\/\1\]/.test(text)) mark("upload");
  else if (/^Loading model from cache\[(\d+)\/\1\]/.test(text)) mark("pipeline");
}

// load creates the engine and loads a model instead of the previous one. After a failed or cancelled load no model is
// loaded.
async function load({ model, library, id, window, overrides }) {
  await unload();
  marks = {};
  givenUp = false;
  mark("fetch");
  context = window;
  engine = new webllm.MLCEngine({
    appConfig: { model_list: [{ model, model_id: id, model_lib: library, overrides }] },
    initProgressCallback: progress,
    logLevel: "WARN",
  });
  try {
    await engine.reload(id);
    if (givenUp) throw new Error("the load was cancelled");
    mark("end");
    pipeline = privateParts(engine, id);
  } catch (e) {
    await unload().catch(() => {}); // only the first error matters
    throw e;
  }
  watchTokens(pipeline);
  show(`Loaded ${id}.`);
  return marks;
}

// giveUp cancels a load: WebLLM stops downloading, and shaders are not compiled without a device.
async function giveUp() {
  givenUp = unloading = true;
  pipeline = undefined;
  devices.forEach((device) => device.destroy());
  await engine?.unload();
}

// promptSteps are the pipeline's functions that use the prompt's ids, newest first, and how to get the ids from their
// results.
const promptSteps = [
  ["forwardPrefill", ({ promptTokenIds }) => promptTokenIds], // 0.2.86
  ["getInputData", ([data]) => data.filter(Array.isArray).flat()], // to 0.2.85
];

// privateParts returns the pipeline, and fails with a clear error if WebLLM's private parts have changed.
function privateParts(engine, id) {
  const p = engine.loadedModelIdToPipeline?.get?.(id);
  for (const [name, there] of Object.entries({
    "completions": engine.completions,
    "loadedModelIdToPipeline.get(id)": p,
    "pipeline.processNextToken": typeof p?.processNextToken === "function",
    "pipeline.forwardPrefill": promptSteps.some(([step]) => typeof p?.[step] === "function"),
    "pipeline.tokenizer.encode": typeof p?.tokenizer?.encode === "function",
  })) {
    if (!there) throw new Error(`this WebLLM build has no engine.${name}, which this page needs`);
  }
  return p;
}

// watchTokens wraps the functions of this pipeline that get every sampled token and the prompt's final ids. WebLLM
// encodes a raw prompt without the tokens that the model requires before every text; this adds them.
function watchTokens(p) {
  const encode = p.tokenizer.encode;
  p.tokenizer.encode = function (text, ...rest) {
    const ids = encode.call(this, text, ...rest);
    if (text !== run?.prompt) return ids;
    return Int32Array.from(run.given ?? [...first(p), ...ids]);
  };
  const next = p.processNextToken;
  p.processNextToken = function (id, ...rest) {
    if (run?.scoring) run.scoring.sampled(id);
    else if (run) sampled(id);
    return next.call(this, id, ...rest);
  };
  const [step, ids] = promptSteps.find(([step]) => typeof p[step] === "function");
  const original = p[step];
  const keep = (result) => {
    if (run) run.promptIDs = ids(result);
    return result;
  };
  p[step] = function (...args) {
    const result = original.apply(this, args);
    return result instanceof Promise ? result.then(keep) : keep(result);
  };
}

const first = (p) => p.config?.prompt_prefix_token_ids ?? [];

// Tokens are sent to the host in batches, each with its time, because an event takes half a millisecond of CPU time,
// mostly in the browser.
const batch = 100; // ms

function sampled(id) {
  const at = now();
  run.tokens.push(id, at);
  if (at - run.told >= batch) flush(at);
}

function flush(at) {
  if (run.tokens.length) tell({ tokens: run.tokens, ledger: [...ledger.brief(), held()] });
  run.tokens = [];
  run.told = at;
}

// held returns the number of tokens in the KV cache, by WebLLM's own count.
const held = () => pipeline?.filledKVCacheLength ?? -1;

// generate completes a raw prompt, whose ids may be given. It reports WebLLM's usage counts, but never counts by them.
async function generate({ prompt, ids, maxTokens, temperature, ignoreEOS }) {
  if (!pipeline) throw new Error("no model is loaded");
  const length = ids ? ids.length : first(pipeline).length + pipeline.tokenizer.encode(prompt).length;
  if (length + maxTokens > context) return { tooLong: length, context };
  run = { prompt, given: ids, tokens: [], told: 0, promptIDs: [] };
  try {
    const sent = now();
    const stream = await engine.completions.create({
      prompt, temperature, max_tokens: maxTokens, ignore_eos: ignoreEOS,
      stream: true, stream_options: { include_usage: true },
    });
    const { text, finish, usage } = await drain(stream);
    flush(now());
    return { sent, text, finish, reported: figures(usage), promptIDs: run.promptIDs };
  } finally {
    run = undefined;
  }
}

// score forces WebLLM to generate a given text, and reports the model's probabilities for each token. Its logit
// processor is only installed meanwhile.
async function score({ prompt, forced, top, whole }) {
  if (!pipeline) throw new Error("no model is loaded");
  const { Scoring, verifier, scoreWhole } = await import("./scoring.js");
  let scores = [], told = now();
  const pass = (at) => {
    if (scores.length) tell({ scores });
    [scores, told] = [[], at];
  };
  const scoring = new Scoring(forced, top, (score) => {
    scores.push(score);
    if (now() - told >= batch) pass(now());
  });
  const verify = whole && verifier(pipeline);
  if (verify) {
    engine.interruptSignal = false;
    await scoreWhole(pipeline, verify, prompt, scoring, () => engine.interruptSignal, () => pass(now()));
    return { scored: scoring.at, promptIDs: prompt };
  }
  run = { prompt: "a text to score", given: prompt, scoring, promptIDs: [] }; // a placeholder for the ids
  const own = pipeline.logitProcessor;
  pipeline.logitProcessor = scoring;
  try {
    await drain(await engine.completions.create({
      prompt: run.prompt, temperature: 0, max_tokens: forced.length, ignore_eos: true, stream: true, stream_options: { include_usage: true },
    }));
    pass(now());
    return { scored: scoring.at, promptIDs: run.promptIDs };
  } finally {
    pipeline && (pipeline.logitProcessor = own);
    run = undefined;
  }
}

async function drain(stream) {
  let text = "", finish = "", usage;
  for await (const chunk of stream) {
    const [choice] = chunk.choices;
    text += choice?.text ?? "";
    finish = choice?.finish_reason ?? finish;
    usage = chunk.usage ?? usage;
  }
  return { text, finish, usage };
}

// figures keeps numbers that JSON can represent: no Infinity and NaN.
function figures({ extra = {}, ...counts } = {}) {
  return Object.fromEntries(Object.entries({ ...counts, ...extra }).filter(([, v]) => Number.isFinite(v)));
}

const interrupt = () => engine?.interruptGenerate();

// unload frees the model. The GPU process frees buffers when their device is gone or gets its next submission, so this
// waits for both.
async function unload() {
  if (!engine) return;
  unloading = true;
  try {
    await engine.unload();
    for (const device of devices.splice(0)) {
      device.queue.submit([]);
      await device.queue.onSubmittedWorkDone();
      device.destroy();
      await device.lost;
    }
  } finally {
    unloading = false;
    engine = pipeline = undefined;
  }
  show("Ready: no model is loaded.");
}

globalThis.llmparity = { held, now, adapter, load, giveUp, generate, score, interrupt, unload };
