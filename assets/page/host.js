// What the engine of a page shares with llmparity, on the engine's thread: the page's or a worker's. Times are milliseconds of that
// thread's own clock, performance.timeOrigin + performance.now(); the host measures the difference to its own.
//
// An engine is the module engine/engine.js, which imports host from here, so that everything that uses WebGPU comes after
// the ledger. It exports
//   load(options)      loads a model; options are what its Go package offers. No model is loaded before, and none after an error
//   generate(request)  { prompt, ids, maxTokens, temperature, seed, ignoreEOS }: calls host.token(id) when it has sampled
//                      a token, and returns { promptIDs, text, finish, reported, sent, warnings }, or { tooLong, context } before it
//                      computes anything. At a temperature above 0 it draws from all tokens, by the seed. Warnings are { code, text }
//   interrupt()        makes generate or score return soon
//   unload()           frees the model, if there is one; afterwards host destroys the WebGPU devices
// and may export
//   start()            imports the runtime, before anything else is called
//   giveUp()           makes load return soon
//   score(text)        { prompt, forced, top, whole }: calls host.score for each forced token, and returns { promptIDs }
//   held()             the number of tokens in the KV cache
//   ran()              what is known of the device and of memory after the load, for Offer.Ran of its Go package
// Long work lets the thread's other tasks run between tokens (host.turn), because else it could not be interrupted.

import { ledger } from "./ledger.js"; // must precede everything that uses WebGPU
import { adapter } from "./adapter.js";

const now = () => performance.timeOrigin + performance.now();

// The host adds this binding to the thread; without a host it is missing.
const tell = (event) => globalThis.llmparityEvent?.(JSON.stringify(event));

let engine; // the module
let show = () => {}; // displays a status text
const devices = []; // WebGPU devices that the engine asked for
let unloading = false; // a device destroyed meanwhile is not lost
let givenUp = false;
let marks = {}; // start of each load stage
let tokens; // of the generation in progress, not yet sent: ids and times in turn
let scores; // of the text in progress, not yet sent
let told = 0; // when they were last sent

// Tokens and scores are sent to the host in batches, because an event takes half a millisecond of CPU time, mostly in the
// browser.
const batch = 100; // ms

// ask calls what an engine may lack.
const ask = (name, ...args) => engine[name]?.(...args);

export const host = {
  now,

  // mark records when a stage of the load first begins.
  mark(stage) {
    if (stage in marks) return;
    marks[stage] = now();
    ledger.enter(stage);
  },

  // token reports a token that was sampled now, or at a time that was kept.
  token(id, at = now()) {
    tokens.push(id, at);
    if (at - told >= batch) flush(at);
  },

  // score reports numbers about a forced token, as scoreOf in scores.js returns them.
  score(numbers) {
    scores.push(numbers);
    if (now() - told >= batch) flush(now());
  },

  // turn lets other tasks of the thread run.
  turn: () => new Promise((done) => {
    const { port1, port2 } = new MessageChannel(); // without the 4 ms that a nested timer takes
    port1.onmessage = () => { port1.close(); done(); };
    port2.postMessage(0);
  }),
};

function flush(at) {
  if (tokens?.length) tell({ tokens, ledger: [...ledger.brief(), held()] });
  if (scores?.length) tell({ scores });
  [tokens, scores, told] = [[], [], at];
}

const held = () => ask("held") ?? -1;

// start imports the engine; say displays its status.
export async function start(say) {
  show = say;
  if (globalThis.GPUDevice && new URLSearchParams(location.search).has("kernels")) await import("./kernels.js");
  engine = await import("./engine/engine.js");
  await ask("start");
  show("Ready: no model is loaded.");
}

// watchDevices wraps the request of WebGPU devices, because runtimes do not expose their device, its loss or its errors.
function watchDevices() {
  if (!globalThis.GPUAdapter) return;
  const requestDevice = GPUAdapter.prototype.requestDevice;
  GPUAdapter.prototype.requestDevice = async function (...args) {
    const device = await requestDevice.apply(this, args);
    devices.push(device);
    watchDevice(device);
    return device;
  };
}
watchDevices();

// preferPower makes adapters those of the power preference that was asked for, whatever the runtime asks for.
function preferPower() {
  const powerPreference = new URLSearchParams(location.search).get("power");
  if (!globalThis.GPU || !powerPreference) return;
  const requestAdapter = GPU.prototype.requestAdapter;
  GPU.prototype.requestAdapter = function (options) { return requestAdapter.call(this, { ...options, powerPreference }); };
}
preferPower();

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
}

// load loads a model instead of the previous one, and returns when each stage began. After a failed or cancelled load no
// model is loaded.
async function load(options) {
  await unload();
  marks = {};
  givenUp = false;
  try {
    await engine.load(options);
    if (givenUp) throw new Error("the load was cancelled");
    host.mark("end");
  } catch (e) {
    await unload().catch(() => {}); // only the first error matters
    throw e;
  }
  show("A model is loaded.");
  return marks;
}

// giveUp cancels a load. Nothing can be computed without a device.
async function giveUp() {
  givenUp = unloading = true;
  devices.forEach((device) => device.destroy());
  await ask("giveUp");
}

async function generate(request) {
  [tokens, told] = [[], 0];
  const answer = await engine.generate(request);
  flush(now());
  return { ...answer, reported: finite(answer.reported) };
}

// finite keeps numbers that JSON can represent: no Infinity and NaN.
const finite = (figures = {}) => Object.fromEntries(Object.entries(figures).filter(([, v]) => Number.isFinite(v)));

async function score(text) {
  [scores, told] = [[], now()];
  const answer = await engine.score(text);
  flush(now());
  return answer;
}

// unload frees the model. The GPU process frees buffers when their device is gone or gets its next submission, so this
// waits for both.
async function unload() {
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
  }
  show("Ready: no model is loaded.");
}

// reading is the ledger's, with the number of tokens in the KV cache. An engine may have a ledger in a worker of its own.
const reading = async () => ({ ledger: await globalThis.llmparityLedger.read(), held: held() });

const dispatches = async () => (await globalThis.llmparityLedger.read()).figures.dispatch_count ?? -1;

// shares tells whether threads can share memory.
const shares = () => typeof SharedArrayBuffer === "function" && crossOriginIsolated;

globalThis.llmparity = { held, now, adapter, reading, dispatches, shares, load, ran: () => ask("ran"), giveUp, generate, score, interrupt: () => engine.interrupt(), unload };
