// The worker in which the engine runs instead of on the page's own thread.

import { start } from "./host.js";

start((text) => postMessage({ text })).then(() => postMessage({ started: true }), ({ message }) => postMessage({ failed: message }));
