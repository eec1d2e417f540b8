// The worker in which the engine runs instead of on the page's own thread. With ?relay, the page passes on what the host asks
// this thread, and what this thread reports: not every browser lets the host into a worker. With ?relay=calls that is calls only.

import { call } from "./call.js";
import { start } from "./host.js";

const relay = new URLSearchParams(location.search).get("relay"); // null: nothing is passed on
const evaluate = relay === "calls" ? call : (expression) => (0, eval)(`(${expression})`);

// answer evaluates an expression of the host's; the page's comment on its relay says how it is answered.
async function answer({ data: { id, expression } }) {
  try {
    postMessage({ id, json: JSON.stringify(await evaluate(expression)) });
  } catch (e) {
    postMessage({ id, thrown: String(e) });
  }
}

if (relay !== null) {
  onmessage = answer;
  globalThis.llmparityEvent = (report) => postMessage({ report });
}

start((text) => postMessage({ text })).then(() => postMessage({ started: true }), ({ message }) => postMessage({ failed: message }));
