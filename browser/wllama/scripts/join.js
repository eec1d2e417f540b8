// The worker that wllama makes for itself, with inner.js in it, and its ledger in place of this thread's, which sees nothing there.

import { host } from "../host.js";
import { ledger } from "../ledger.js";

const own = { ...ledger };
const kernels = globalThis.llmparityKernels; // undefined: no profile is wanted

// join waits for wllama to make its worker, and returns what it knows of it. Workers are as before once it is settled.
export function join(script) {
  const Before = globalThis.Worker;
  const first = [script, ...(kernels ? [new URL("../kernels.js", script).href] : [])].map((url) => `import "${url}";`).join(" ");
  let worker, brief, lost;
  const waiting = new Map(); // what asks the worker, by number
  const died = new Promise((_, reject) => { lost = reject; });
  died.catch(() => {}); // who waits for the worker gets the error
  globalThis.Worker = class extends Before {
    constructor(url, options) {
      super(URL.createObjectURL(new Blob([`${first} import "${url}";`], { type: "text/javascript" })), { ...options, name: "llmparity" });
      worker ??= this;
      this.addEventListener("message", heard);
      this.addEventListener("error", ({ message }) => lost(new Error(`wllama's worker failed: ${message ?? "its script is missing"}`)));
    }
  };

  function heard(e) {
    const { llmparity: told, brief: latest } = e.data ?? {};
    if (latest) brief = latest;
    if (!told) return;
    e.stopImmediatePropagation(); // wllama does not know it
    if (told.event) return globalThis.llmparityEvent?.(JSON.stringify(told.event));
    waiting.get(told.id)?.(told.answer);
    waiting.delete(told.id);
  }

  // alive waits for a result, or for the end of the worker, of which wllama says nothing.
  const alive = (result) => Promise.race([result, died]);

  function ask(name) {
    const id = waiting.size ? Math.max(...waiting.keys()) + 1 : 1;
    const answer = new Promise((done) => waiting.set(id, done));
    worker.postMessage({ llmparity: name, id });
    return alive(answer);
  }

  const there = (name) => () => worker ? ask(name) : own[name]();
  Object.assign(ledger, {
    read: there("read"), mark: there("mark"), history: there("history"), wasm: there("wasm"),
    brief: () => brief ? [host.now(), ...brief.slice(1)] : own.brief(),
  });
  if (kernels) Object.assign(kernels, { on: () => ask("on"), take: () => ask("take") });

  return {
    ask, alive,
    settled() { globalThis.Worker = Before; },
    leave(reason) {
      Object.assign(ledger, own);
      worker = undefined;
      lost(reason);
    },
  };
}
