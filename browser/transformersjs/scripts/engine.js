// transformers.js as an engine of llmparity's page; host.js says what is called when. ONNX Runtime computes, in
// WebAssembly or on WebGPU.

import { host } from "../host.js";
import { scoreOf } from "../scores.js";
import { ledger } from "../ledger.js";

let library; // transformers.js
let model, tokenizer; // undefined: none is loaded
let context; // tokens
let backend; // wasm or webgpu
let instantiated = false; // ONNX Runtime's WebAssembly
let stop; // ends the generation or scoring in progress
let cancel; // ends the downloads in progress
let held_ = 0; // tokens in the KV cache
let subgroups; // shaders may use them
let dispatches = 0; // of compute shaders, since the page was opened

const at = (path) => new URL(path, import.meta.url).href;

let imports = 0;
let spoilt = false; // a load has failed, after which this copy of transformers.js fails in all others

export async function start() {
  library = await import(`./transformers.min.js?${imports++}`);
  instantiated = spoilt = false;
  const { env } = library;
  if (!env?.backends?.onnx?.wasm) throw new Error("this build of transformers.js has no env.backends.onnx.wasm, which this page needs");
  // Everything comes from our server, and nothing is kept unless the plan asks for it.
  Object.assign(env, { allowRemoteModels: false, allowLocalModels: true, useBrowserCache: false, useWasmCache: false });
  env.fetch = ask;
  const ort = "ort-wasm-simd-threaded.asyncify";
  env.backends.onnx.wasm.wasmPaths = { mjs: at(`./${ort}.mjs`), wasm: at(`./${ort}.wasm`) };
}

const unread = new Map(); // answers whose body nobody has read yet, by address
let left = new Set(); // files of weights that are not here yet

// ask fetches a file. transformers.js asks for some twice and never reads the first answer, which would keep its connection.
// It gets no callback for its progress, because then it does that with the weights, too.
async function ask(url, init) {
  await unread.get(url)?.body?.cancel();
  const response = await fetch(url, { ...init, signal: cancel?.signal });
  unread.set(url, response);
  return counted(url, response);
}

// counted notices that the last file of the weights is here.
function counted(url, response) {
  const read = response.arrayBuffer;
  response.arrayBuffer = async function () {
    unread.delete(url);
    const bytes = await read.call(this);
    const file = [...left].find((name) => url.endsWith(`/${name}`));
    if (left.delete(file) && left.size === 0) host.mark(instantiated ? "session" : "wasm");
    return bytes;
  };
  return response;
}

// The cache in which transformers.js keeps a model, with its own name. It goes on without a word where it cannot store a file.
let refused;

async function keep(storage) {
  refused = undefined;
  library.env.useCustomCache = storage === "cache";
  if (!library.env.useCustomCache) return;
  const cache = await caches.open(library.env.cacheKey);
  library.env.customCache = {
    async match(url) {
      const found = await cache.match(url);
      return found && counted(url, found);
    },
    put: (url, response) => cache.put(url, response).catch((e) => { refused ??= e; }),
  };
}

// Instantiation begins and ends a stage of the first load. A page keeps its WebAssembly until it is closed.
for (const name of ["instantiate", "instantiateStreaming"]) {
  const original = WebAssembly[name];
  WebAssembly[name] = async function (...args) {
    host.mark("wasm");
    const result = await original.apply(this, args);
    instantiated = true;
    host.mark("session");
    return result;
  };
}

// A dispatch is evidence that WebGPU computes.
for (const name of ["dispatchWorkgroups", "dispatchWorkgroupsIndirect"]) {
  const prototype = globalThis.GPUComputePassEncoder?.prototype;
  if (!prototype) continue;
  const original = prototype[name];
  prototype[name] = function (...args) {
    dispatches++;
    return original.apply(this, args);
  };
}

// deviceOf makes the device of a load as ONNX Runtime would, which would use a destroyed one again after an unload. But with
// subgroups of 4, as SwiftShader has, and of 8, as lavapipe has, its kernel FlashAttention, of prompts above 32 tokens, comes
// out wrong, by its own fault or the driver's: without them it is right.
async function deviceOf() {
  const adapter = await navigator.gpu?.requestAdapter();
  if (!adapter) throw new Error("the browser has no WebGPU adapter for transformers.js");
  const requiredLimits = {};
  for (const limit of ["maxBufferSize", "maxStorageBufferBindingSize", "maxComputeWorkgroupStorageSize", "maxComputeInvocationsPerWorkgroup",
    "maxComputeWorkgroupSizeX", "maxComputeWorkgroupSizeY", "maxComputeWorkgroupSizeZ", "maxComputeWorkgroupsPerDimension",
    "maxStorageBuffersPerShaderStage"]) {
    requiredLimits[limit] = adapter.limits[limit];
  }
  subgroups = adapter.features.has("subgroups") && adapter.info.subgroupMaxSize >= 16;
  const requiredFeatures = ["shader-f16", "subgroups"].filter((name) => adapter.features.has(name) && (name !== "subgroups" || subgroups));
  return adapter.requestDevice({ requiredFeatures, requiredLimits });
}

// load loads a model from a folder of the page's server. files are those of its weights.
export async function load(options) {
  host.mark("fetch");
  if (spoilt) await start();
  spoilt = true;
  ({ context, backend } = options);
  cancel = new AbortController();
  const { env, AutoModelForCausalLM, AutoTokenizer } = library;
  const { wasm } = env.backends.onnx;
  if (options.threads > 1 && !globalThis.crossOriginIsolated) throw new Error("no threads: the page is not cross-origin isolated");
  if (options.threads > 1 && !globalThis.SharedArrayBuffer) throw new Error("no threads: the browser has no SharedArrayBuffer");
  if (options.threads) wasm.numThreads = options.threads;
  env.localModelPath = new URL("..", import.meta.url).pathname; // an address with a host would count as remote
  const device = backend === "webgpu" ? await deviceOf() : undefined;
  left = new Set(options.files);
  await keep(options.storage);
  tokenizer = await AutoTokenizer.from_pretrained(options.path);
  model = await AutoModelForCausalLM.from_pretrained(options.path, {
    device: backend, dtype: options.dtype, use_external_data_format: options.externalFiles,
    ...(device && { session_options: { executionProviders: [{ name: "webgpu", device }] } }),
  });
  if (refused) throw new Error(`the browser does not store the model: ${refused.name}: ${refused.message}`);
  // While WebAssembly computes, other tasks of the thread run only between steps.
  const forward = model.forward.bind(model);
  model.forward = async (inputs) => {
    await host.turn();
    return forward(inputs);
  };
  if (device) await device.queue.onSubmittedWorkDone();
  if (device && ledger.brief()[1] === 0) throw new Error(silent);
  spoilt = false;
}

const silent = "transformers.js was to compute on WebGPU, but computes in WebAssembly";

export const giveUp = async () => cancel?.abort();

export async function unload() {
  try {
    await model?.dispose();
  } finally {
    model = tokenizer = undefined;
    held_ = 0;
  }
}

// ran tells which backend has the model, and with how many threads.
export const ran = () => ({
  backend, threads: library.env.backends.onnx.wasm.numThreads ?? 0, isolated: globalThis.crossOriginIsolated,
  onnx: library.env.backends.onnx.versions?.web, subgroups,
});

export const interrupt = () => stop?.interrupt();

export const held = () => held_;

const tensor = (ids) => new library.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);

const ones = (n) => new library.Tensor("int64", new BigInt64Array(n).fill(1n), [1, n]);

// plainly has none of the habits that a model's generation_config.json may ask for, and other engines don't have.
const plainly = {
  top_k: 0, top_p: 1, repetition_penalty: 1, no_repeat_ngram_size: 0, bad_words_ids: null, min_length: 0, min_new_tokens: null,
  forced_bos_token_id: null, forced_eos_token_id: null, suppress_tokens: null, begin_suppress_tokens: null, guidance_scale: null,
  num_beams: 1, num_return_sequences: 1, return_dict_in_generate: false,
};

// run generates, and calls each with every token.
async function run(ids, count, more, each) {
  stop = new library.InterruptableStoppingCriteria();
  const before = dispatches;
  let puts = 0;
  const streamer = {
    put([[id]]) {
      held_ = ids.length + puts - 1; // the last one is not in it yet
      if (puts++ > 0) each(Number(id)); // the prompt comes first
    },
    end() {},
  };
  await model.generate({
    inputs: tensor(ids), attention_mask: ones(ids.length), max_new_tokens: count, do_sample: false, ...plainly, ...more,
    streamer, stopping_criteria: stop,
  });
  held_ = 0;
  if (backend === "webgpu" && dispatches === before) throw new Error(silent);
  return dispatches - before;
}

const ends = () => [model.generation_config?.eos_token_id ?? model.config.eos_token_id ?? []].flat();

// generate completes a raw prompt, whose ids may be given.
export async function generate({ prompt, ids, maxTokens, temperature, seed, ignoreEOS }) {
  if (!model) throw new Error("no model is loaded");
  const promptIDs = ids ?? tokenizer.encode(prompt);
  if (promptIDs.length + maxTokens > context) return { tooLong: promptIDs.length, context };
  const eos = ignoreEOS ? [] : ends(), made = [];
  const more = { eos_token_id: eos.length ? eos : null };
  if (temperature > 0) {
    library.random.seed(seed);
    Object.assign(more, { do_sample: true, temperature });
  }
  const sent = host.now();
  const count = await run(promptIDs, maxTokens, more, (id) => {
    made.push(id);
    host.token(id);
  });
  const finish = stop.interrupted ? "abort" : eos.includes(made.at(-1)) ? "stop" : "length";
  return {
    sent, promptIDs, finish, text: tokenizer.decode(made, { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
    reported: { prompt_tokens: promptIDs.length, completion_tokens: made.length, ...(backend === "webgpu" && { dispatches: count }) },
  };
}

// score forces a text. As a whole, several tokens are computed at a time, as those of a prompt.
export async function score({ prompt, forced, top, whole }) {
  if (!model) throw new Error("no model is loaded");
  if (whole) {
    await scoreWhole(prompt, forced, top);
    return { promptIDs: prompt };
  }
  let at = 0;
  const force = (_, logits) => {
    const id = forced[at++];
    host.score(scoreOf(logits.data, id, top));
    logits.data.fill(-Infinity);
    logits.data[id] = 0;
    return logits;
  };
  let made = 0;
  await run(prompt, forced.length, { eos_token_id: null, logits_processor: [force] }, (id) => {
    if (id !== forced[made++]) throw new Error(`transformers.js chose token ${id} instead of the forced ${forced[made - 1]}`);
  });
  return { promptIDs: prompt };
}

const mostLogits = 2 ** 23; // of one call

async function scoreWhole(prompt, forced, top) {
  stop = new library.InterruptableStoppingCriteria();
  const ids = [...prompt, ...forced.slice(0, -1)], first = prompt.length - 1;
  let cache = null, most = 1; // tokens at a time; the vocabulary's size is known after the first
  for (let at = 0, n; at < ids.length && !stop.interrupted; at += n) {
    n = at < first ? first - at : Math.min(most, ids.length - at);
    const keep = at < first ? 1 : n;
    const outputs = await model.forward({
      input_ids: tensor(ids.slice(at, at + n)), attention_mask: ones(at + n), past_key_values: cache,
      num_logits_to_keep: new library.Tensor("int64", [BigInt(keep)], []),
    });
    const present = Object.entries(outputs).filter(([name]) => name.startsWith("present"));
    const entries = Object.fromEntries(present.map(([name, value]) => [name.replace("present", "past_key_values"), value]));
    if (cache) cache.update(entries);
    else cache = new library.DynamicCache(entries);
    const { data, dims: [, rows, width] } = outputs.logits;
    most = Math.max(1, Math.floor(mostLogits / width));
    if (at < first) continue;
    for (let i = 0; i < n; i++) host.score(scoreOf(data.subarray((rows - n + i) * width, (rows - n + i + 1) * width), forced[at - first + i], top));
  }
  await cache?.dispose();
}
