// What llmparity sees of the worker in which wllama computes. It is imported there before wllama's code, so that the ledger counts
// all WebGPU buffers and WebAssembly memories. Figures go to engine.js in messages of their own, or beside wllama's.

import { ledger } from "../ledger.js";

const post = self.postMessage.bind(self);
let threads = 0; // workers that the WebAssembly made of its own

self.Worker = new Proxy(self.Worker, {
  construct(target, args) {
    threads++;
    return Reflect.construct(target, args);
  },
});

// Lines of llama.cpp's log after which buffers of another kind are made.
const stages = [
  [/load_tensors: loading model tensors/, "weights"],
  [/llama_context: constructing llama_context/, "cache"],
  [/sched_reserve: reserving/, "compute"],
];

// wllama posts its log and its results. What may change with each token goes along with results.
self.postMessage = (message, ...rest) => {
  if (message?.verb?.startsWith("console.")) {
    for (const [line, stage] of stages) if (line.test(message.args[0])) ledger.enter(stage);
  } else if (message?.callbackId) {
    message.brief = ledger.brief();
  }
  post(message, ...rest);
};

const answers = {
  read: () => ledger.read(),
  mark: () => ledger.mark(),
  history: () => ledger.history(),
  wasm: () => ({ ...ledger.wasm(), threads }),
  on: () => globalThis.llmparityKernels.on(),
  take: () => globalThis.llmparityKernels.take(),
};

self.addEventListener("message", async (e) => {
  const { llmparity: name, id } = e.data ?? {};
  if (!name) return;
  e.stopImmediatePropagation();
  post({ llmparity: { id, answer: await answers[name]() } });
});

// watchDevices reports a lost device and WebGPU's errors as host.js does for its own thread.
function watchDevices() {
  if (!globalThis.GPUAdapter) return;
  const tell = (event) => post({ llmparity: { event } });
  const { requestDevice } = GPUAdapter.prototype;
  GPUAdapter.prototype.requestDevice = async function (...args) {
    const device = await requestDevice.apply(this, args);
    device.lost.then(({ reason, message }) => tell({ lost: { reason, message } }));
    device.addEventListener("uncapturederror", ({ error }) => tell({ gpu: { kind: error.constructor.name, message: error.message } }));
    return device;
  };
}
watchDevices();

ledger.enter("fetch"); // the ledger's history begins
