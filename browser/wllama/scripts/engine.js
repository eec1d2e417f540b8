// wllama as an engine of llmparity's page; host.js says what is called when. wllama is llama.cpp's server in WebAssembly, in a worker of
// its own, and takes the same requests, but prompts only as text.

import { host } from "../host.js";
import { join } from "./join.js";
import { server } from "./requests.js";

let runtime; // wllama's module
let wllama; // undefined: none is loaded
let inner; // its worker
let stored; // the model's files in the browser, to be removed
let context; // window in tokens
let stopping; // AbortController of a download or request
let lines = []; // of the log, since the load began

const here = (path) => new URL(path, import.meta.url).href;

export async function start() {
  try {
    runtime = await import("./wllama.js");
  } catch (e) {
    throw new Error(`wllama's module (wllama.js) cannot be imported: ${e.message}`);
  }
  if (typeof runtime.Wllama !== "function") throw new Error("the wllama module has no class Wllama");
}

// Texts of the log that begin a stage of the load.
const stages = [
  [/^Calling wllamaStart/, "backend"],
  [/^Loading model/, "weights"],
  [/llama_context: constructing llama_context/, "context"],
];

const logs = (level) => (...words) => {
  const text = words.map((w) => w?.message ?? w).join(" ");
  for (const [line, stage] of stages) if (line.test(text)) host.mark(stage);
  if (lines.length < 4096) lines.push({ level, text });
};

const logger = { debug: logs("debug"), log: logs("log"), warn: logs("warn"), error: logs("error") };

// why adds to an error what llama.cpp said, because wllama's own messages have no reason.
function why(e) {
  const said = lines.filter(({ level, text }) => (level === "error" || /error|fail|abort|bad_alloc|memory/i.test(text)) &&
    !/^(Stack trace|Aborted\(\)|ggml_webgpu: Failed to get an adapter)/.test(text)).map(({ text }) => text.trim());
  const own = e?.message ?? String(e);
  return new Error([...new Set([own, ...said.slice(0, 2)])].join(": "));
}

// inStore downloads a model into the browser's storage, as wllama does by itself, or finds it there.
async function inStore(files, keep) {
  const model = await wllama.modelManager.getModelOrDownload({ url: here(files[0]) }, { signal: stopping.signal });
  stored = keep ? undefined : model;
  return model.open();
}

// inMemory downloads a model into the browser's memory.
const inMemory = (files) => Promise.all(files.map(async (file) => {
  const answer = await fetch(here(file), { signal: stopping.signal });
  if (!answer.ok) throw new Error(`Failed to fetch ${file}: HTTP ${answer.status}`);
  return answer.blob();
}));

// load loads a model from the files of one.
export async function load({ files, params, threads, window, storage, keep }) {
  lines = [];
  if (threads > 1 && !globalThis.crossOriginIsolated) throw new Error("no threads: the page is not cross-origin isolated");
  if (threads > 1 && !globalThis.SharedArrayBuffer) throw new Error("no threads: the browser has no SharedArrayBuffer");
  host.mark("download");
  context = window;
  stopping = new AbortController();
  wllama = new runtime.Wllama({ default: here("./wllama.wasm") }, { logger });
  wllama.setCompat(null); // else it may load another build from a CDN
  try {
    const blobs = await (storage === "none" ? inMemory(files) : inStore(files, keep));
    host.mark("wasm");
    inner = join(here("./inner.js"));
    await inner.alive(wllama.loadModel(blobs, { ...params, n_threads: threads }));
  } catch (e) {
    throw why(e);
  } finally {
    inner?.settled();
  }
  if (!wllama.isModelLoaded() || !(wllama.loadedContextInfo?.n_vocab > 0)) throw why(new Error("llama.cpp cannot load the model"));
}

// ran returns what the log says of the load, and how many threads there are.
export const ran = async () => ({
  log: lines.map(({ text }) => text), version: runtime.Wllama.getLibllamaVersion(),
  threads: wllama.getNumThreads(), workers: (await inner.ask("wasm")).threads,
});

// giveUp ends a load: wllama cannot cancel what its worker does.
export async function giveUp() {
  stopping?.abort();
  await wllama?.exit();
  inner?.leave(new Error("the load was cancelled"));
}

export const interrupt = () => stopping?.abort();

export async function unload() {
  await wllama?.exit();
  inner?.leave(new Error("the model was unloaded"));
  const files = stored;
  wllama = inner = stored = undefined;
  requests = undefined;
  await files?.remove();
}

let requests; // of the loaded model

// ready returns what sends requests to the loaded model.
function ready() {
  if (!inner) throw new Error("no model is loaded");
  stopping = new AbortController();
  requests ??= server({ complete: (body) => inner.alive(wllama.createCompletion(body)), ends: (id) => wllama.isTokenEOG(id), why });
  requests.signal = stopping.signal;
  return requests;
}

export const held = () => requests?.held ?? (inner ? 0 : -1);

export const generate = (request) => ready().generate(request, context);

export const score = (text) => ready().score(text);
