// The page that llmparity opens. With ?thread=worker, the engine runs in a worker of the page, otherwise on the page's own
// thread, both by host.js, which reads the rest of the query.

import * as health from "./health.js";

const state = document.getElementById("state");
const show = (text) => { state.textContent = text; };

// inWorker starts the worker, which reports its status in messages.
function inWorker() {
  const worker = new Worker(`worker.js${location.search}`, { type: "module", name: "llmparity" });
  globalThis.llmparityRelay = relay(worker);
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { text, started, failed } }) => {
      if (text) show(text);
      if (started) resolve();
      if (failed) reject(new Error(failed));
    };
    worker.onerror = ({ message }) => reject(new Error(`cannot start the worker: ${message ?? "its script is missing"}`));
  });
}

// relay returns a function that evaluates an expression in the worker and returns the JSON of what it becomes, or throws a text.
// What the worker reports meanwhile is passed on before the answer.
function relay(worker) {
  const asked = new Map();
  let last = 0;
  worker.addEventListener("message", ({ data: { id, json, thrown, report } }) => {
    if (report) globalThis.llmparityEvent?.(report);
    if (!asked.has(id)) return;
    const { resolve, reject } = asked.get(id);
    asked.delete(id);
    if (thrown === undefined) resolve(json);
    else reject(thrown);
  });
  return (expression) => new Promise((resolve, reject) => {
    asked.set(++last, { resolve, reject });
    worker.postMessage({ id: last, expression });
  });
}

const here = async () => (await import("./host.js")).start(show);

const query = new URLSearchParams(location.search);
const started = query.get("thread") === "worker" ? inWorker() : here();
started.catch(({ message }) => show(message)); // awaiting callers get the error too

const storage = () => import("./storage.js");

// memory is the JavaScript heap, where the browser tells it to a page.
const memory = () => performance.memory && { used: performance.memory.usedJSHeapSize, total: performance.memory.totalJSHeapSize };

// spin keeps the page's process busy for a time, so that it can be found among others.
function spin(ms) {
  for (const end = performance.now() + ms; performance.now() < end;);
}

globalThis.llmparityPage = {
  health, memory, spin, ready: () => started.then(() => true),
  usage: async () => (await storage()).usage(), halve: async (inPlace) => { await (await storage()).halve(inPlace); return true; },
};

if (query.get("relay") === "calls") import("./hand.js");
