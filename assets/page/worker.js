// The worker in which WebLLM runs instead of on the page's own thread. engine.js imports the WebGPU ledger before
// everything that uses WebGPU.

import { start } from "./engine.js";

start((text) => postMessage({ text })).then(() => postMessage({ started: true }), ({ message }) => postMessage({ failed: message }));
