// The worker in which WebLLM runs where it is not to run on the page's own thread. engine.js imports the ledger of WebGPU before all
// that uses it.

import { start } from "./engine.js";

start((text) => postMessage({ text })).then(() => postMessage({ started: true }), ({ message }) => postMessage({ failed: message }));
