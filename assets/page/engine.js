// What llmparity calls where WebLLM runs: on a page's main thread, or in a worker of the page's, the same code in both. Times are
// milliseconds of that thread's own clock, performance.timeOrigin + performance.now(); the host measures that clock against its own.

import { ledger } from "./ledger.js"; // before all that uses WebGPU
import { adapter } from "./adapter.js";

const now = () => performance.timeOrigin + performance.now();

// The host adds this binding to the thread; where there is no host there is none.
const tell = (event) => globalThis.llmparityEvent?.(JSON.stringify(event));

let show = () => {}; // tells a person what the engine is doing
let webllm; // the bundle's module
let engine;
let pipeline; // the loaded model's, a private part of the engine
let context; // the window in tokens
const devices = []; // WebGPU devices that WebLLM asked for
let unloading = false; // a device that is destroyed meanwhile is no loss
let givenUp = false;
let marks = {}; // load stages and when they began
let run; // the generation in progress

// start imports WebLLM. say is called with what a person may want to read.
export async function start(say) {
  show = say;
  try {
    webllm = await import("./dist/web-llm.js");
  } catch (e) {
    throw new Error(`WebLLM's bundle (dist/web-llm.js) can't be imported: ${e.message}`);
  }
  if (typeof webllm.MLCEngine !== "function") throw new Error("the module that is served as WebLLM has no class MLCEngine");
  show("Ready: no model is loaded.");
}

// watchDevices wraps the way to a WebGPU device: WebLLM keeps its device to itself, and tells the caller neither of its loss nor
// of errors. A buffer that can't be had makes it destroy the device, with a line on the console.
function watchDevices() {
  if (!globalThis.GPUAdapter) return;
  const requestAdapter = GPU.prototype.requestAdapter;
  GPU.prototype.requestAdapter = function (...args) {
    mark("device");
    return requestAdapter.apply(this, args);
  };
  const requestDevice = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (...args) {
    const device = await requestDevice.apply(this, args);
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

// mark notes the first time that a stage begins.
function mark(stage) {
  if (stage in marks) return;
  marks[stage] = now();
  ledger.enter(stage);
}

// WebLLM tells its progress in words; these begin the stages that nothing else shows.
function progress({ text }) {
  if (/^Start to fetch params/.test(text)) mark("download");
  else if (/^Fetching param cache\[(\d+)\/\1\]/.test(text)) mark("upload");
  else if (/^Loading model from cache\[(\d+)\/\1\]/.test(text)) mark("pipeline");
}

// load creates the engine and loads one model, in place of the one before. A load that fails, or is given up, leaves nothing loaded.
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
    if (givenUp) throw new Error("the load was given up");
    mark("end");
    pipeline = privateParts(engine, id);
  } catch (e) {
    await unload().catch(() => {}); // the first error is the one that matters
    throw e;
  }
  watchTokens(pipeline);
  show(`Loaded ${id}.`);
  return marks;
}

// giveUp ends a load in progress: WebLLM stops fetching, and without a device there is no compiling of shaders.
async function giveUp() {
  givenUp = unloading = true;
  pipeline = undefined;
  devices.forEach((device) => device.destroy());
  await engine?.unload();
}

// promptSteps are the functions of a pipeline through which the ids of a prompt go, newest first, and where in their result they are.
const promptSteps = [
  ["forwardPrefill", ({ promptTokenIds }) => promptTokenIds], // 0.2.86
  ["getInputData", ([data]) => data.filter(Array.isArray).flat()], // to 0.2.85
];

// privateParts finds the pipeline, and fails clearly where WebLLM's inside is not as this page knows it.
function privateParts(engine, id) {
  const p = engine.loadedModelIdToPipeline?.get?.(id);
  for (const [name, there] of Object.entries({
    "completions": engine.completions,
    "loadedModelIdToPipeline.get(id)": p,
    "pipeline.processNextToken": typeof p?.processNextToken === "function",
    "pipeline.forwardPrefill": promptSteps.some(([step]) => typeof p?.[step] === "function"),
    "pipeline.tokenizer.encode": typeof p?.tokenizer?.encode === "function",
  })) {
    if (!there) throw new Error(`this build of WebLLM has no engine.${name}, which this page was written for`);
  }
  return p;
}

// watchTokens wraps the one place through which every sampled token goes, on this pipeline alone, and the one that knows the
// prompt's ids as they were used. WebLLM encodes a raw prompt without the tokens that the model wants in front of every text; they
// are put there.
function watchTokens(p) {
  const encode = p.tokenizer.encode;
  p.tokenizer.encode = function (text, ...rest) {
    const ids = encode.call(this, text, ...rest);
    if (text !== run?.prompt) return ids;
    return Int32Array.from(run.scoring ? run.given : [...first(p), ...ids]);
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

// Tokens go to the host in batches, each with the time at which it came: an event takes half a millisecond of CPU time, in the browser
// most of it.
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

// held is how many tokens the KV cache holds; WebLLM keeps count of it where this page can see it.
const held = () => pipeline?.filledKVCacheLength ?? -1;

// generate completes a raw prompt. WebLLM's usage counts are reported as they are, and never used for counting.
async function generate({ prompt, maxTokens, temperature, ignoreEOS }) {
  if (!pipeline) throw new Error("no model is loaded");
  const length = first(pipeline).length + pipeline.tokenizer.encode(prompt).length;
  if (length + maxTokens > context) return { tooLong: length, context };
  run = { prompt, tokens: [], told: 0, promptIDs: [] };
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

// score forces a text on WebLLM, token by token, and tells what it would have chosen at each place. Its processor of logits is there
// for that long alone.
async function score({ prompt, forced, top }) {
  if (!pipeline) throw new Error("no model is loaded");
  const { Scoring } = await import("./scoring.js");
  let scores = [], told = now();
  const pass = (at) => {
    if (scores.length) tell({ scores });
    [scores, told] = [[], at];
  };
  const scoring = new Scoring(forced, top, (score) => {
    scores.push(score);
    if (now() - told >= batch) pass(now());
  });
  run = { prompt: "a text to score", given: prompt, scoring, promptIDs: [] }; // the words only stand for the ids
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

// figures keeps what is a number: Infinity and NaN have no place in JSON.
function figures({ extra = {}, ...counts } = {}) {
  return Object.fromEntries(Object.entries({ ...counts, ...extra }).filter(([, v]) => Number.isFinite(v)));
}

const interrupt = () => engine?.interruptGenerate();

// unload frees the model. Buffers are freed by the GPU process when their device is gone or gets its next submission, so this
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
