// WebLLM as an engine of llmparity's page; host.js says what is called when.

import { host } from "../host.js";
import { pipelineOf, watchTokens } from "./tokens.js";

let webllm; // the bundle's module
let engine;
let pipeline; // of the loaded model, a private part of the engine
let context; // window in tokens
let run; // the generation in progress

export async function start() {
  try {
    webllm = await import("./web-llm.js");
  } catch (e) {
    throw new Error(`WebLLM's bundle (web-llm.js) cannot be imported: ${e.message}`);
  }
  if (typeof webllm.MLCEngine !== "function") throw new Error("the WebLLM module has no class MLCEngine");
}

// watchDevices finds out when WebLLM comes to its device and to its shaders, which are stages of the load.
function watchDevices() {
  if (!globalThis.GPUAdapter) return;
  const requestAdapter = GPU.prototype.requestAdapter;
  GPU.prototype.requestAdapter = function (...args) {
    host.mark("device");
    return requestAdapter.apply(this, args);
  };
  const requestDevice = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (wanted) {
    // llmparity's kernels for software adapters need subgroups. WebLLM requests them itself only since 0.2.83.
    const requiredFeatures = [...(wanted?.requiredFeatures ?? [])];
    if (this.features.has("subgroups")) requiredFeatures.push("subgroups");
    const device = await requestDevice.call(this, { ...wanted, requiredFeatures });
    host.mark("tokenizer");
    const create = device.createComputePipelineAsync;
    device.createComputePipelineAsync = function (...args) {
      host.mark("shaders");
      return create.apply(this, args);
    };
    return device;
  };
}
watchDevices();

function watchInstantiate() {
  const instantiate = WebAssembly.instantiate;
  WebAssembly.instantiate = function (...args) {
    host.mark("wasm");
    return instantiate.apply(this, args);
  };
}
watchInstantiate();

// WebLLM reports its progress as text. These texts begin the stages that are not visible otherwise.
function progress({ text }) {
  if (/^Start to fetch params/.test(text)) host.mark("download");
  else if (/^Fetching param cache\[(\d+)\/\1\]/.test(text)) host.mark("upload");
  else if (/^Loading model from cache\[(\d+)\/\1\]/.test(text)) host.mark("pipeline");
}

// kept says where WebLLM keeps a model. Until 0.2.82 there was only a choice of two.
const kept = (storage) => storage ? { cacheBackend: storage, useIndexedDBCache: storage === "indexeddb" } : {};

// load creates the engine and loads a model, by paths of the page's server.
export async function load({ model, library, id, window, overrides, storage }) {
  const at = (path) => new URL(`../${path}`, import.meta.url).href;
  host.mark("fetch");
  context = window;
  engine = new webllm.MLCEngine({
    appConfig: { model_list: [{ model: at(model), model_id: id, model_lib: at(library), overrides }], ...kept(storage) },
    initProgressCallback: progress,
    logLevel: "WARN",
  });
  await engine.reload(id);
  pipeline = pipelineOf(engine, id);
  watchPrompts(pipeline);
  watchTokens(pipeline, sampled, (ids) => { if (run) run.promptIDs = ids; });
}

// giveUp makes WebLLM stop downloading.
export async function giveUp() {
  pipeline = undefined;
  await engine?.unload();
}

// watchPrompts gives prompts the tokens that the model requires before every text, which WebLLM leaves out of a raw prompt, or the
// ids that the host gives.
function watchPrompts(p) {
  const encode = p.tokenizer.encode;
  p.tokenizer.encode = function (text, ...rest) {
    const ids = encode.call(this, text, ...rest);
    if (text !== run?.prompt) return ids;
    return Int32Array.from(run.given ?? [...first(p), ...ids]);
  };
}

// sampled takes every token that WebLLM has sampled.
function sampled(id) {
  if (run?.scoring) run.scoring.sampled(id);
  else if (run) host.token(id);
}

const first = (p) => p.config?.prompt_prefix_token_ids ?? [];

// held returns the number of tokens in the KV cache, by WebLLM's own count.
export const held = () => pipeline?.filledKVCacheLength ?? -1;

// plainly has no penalties, which a package may have and other engines don't.
const plainly = { frequency_penalty: 0, presence_penalty: 0, repetition_penalty: 1 };

// generate completes a raw prompt, whose ids may be given. It reports WebLLM's usage counts, but never counts by them.
export async function generate({ prompt, ids, maxTokens, temperature, seed, ignoreEOS }) {
  if (!pipeline) throw new Error("no model is loaded");
  const length = ids ? ids.length : first(pipeline).length + pipeline.tokenizer.encode(prompt).length;
  if (length + maxTokens > context) return { tooLong: length, context };
  run = { prompt, given: ids, promptIDs: [] };
  try {
    const sent = host.now();
    const stream = await engine.completions.create({
      prompt, temperature, max_tokens: maxTokens, ignore_eos: ignoreEOS, ...plainly,
      ...(temperature > 0 && { seed, top_p: 1 }), // the package may have another top_p; at 0 nothing is drawn
      stream: true, stream_options: { include_usage: true },
    });
    const { text, finish, usage } = await drain(stream);
    const { extra, ...counts } = usage ?? {};
    return { sent, text, finish, reported: { ...counts, ...extra }, promptIDs: run.promptIDs };
  } finally {
    run = undefined;
  }
}

// score forces WebLLM to generate a given text, and reports the model's probabilities for each token. Its logit
// processor is only installed meanwhile.
export async function score({ prompt, forced, top, whole }) {
  if (!pipeline) throw new Error("no model is loaded");
  const { Scoring, verifier, scoreWhole } = await import("./scoring.js");
  const scoring = new Scoring(forced, top);
  const verify = whole && verifier(pipeline);
  if (verify) {
    engine.interruptSignal = false;
    await scoreWhole(pipeline, verify, prompt, scoring, () => engine.interruptSignal);
    return { promptIDs: prompt };
  }
  run = { prompt: "a text to score", given: prompt, scoring, promptIDs: [] }; // a placeholder for the ids
  const own = pipeline.logitProcessor;
  pipeline.logitProcessor = scoring;
  try {
    await drain(await engine.completions.create({
      prompt: run.prompt, temperature: 0, max_tokens: forced.length, ignore_eos: true, stream: true, stream_options: { include_usage: true },
    }));
    return { promptIDs: run.promptIDs };
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

export const interrupt = () => engine?.interruptGenerate();

export async function unload() {
  try {
    await engine?.unload();
  } finally {
    engine = pipeline = undefined;
  }
}
