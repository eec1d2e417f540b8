// What a page has in a frame of a page that a person opened (package byhand): what a host would ask comes in messages, and what it
// would hear goes there. The server lets only that page have this one in a frame.

import { call } from "./call.js";

const soon = 50; // ms that an engine has to end what it does, before its memory is looked at

const tell = (message) => parent.postMessage(message, "*");

globalThis.llmparityEvent = (report) => tell({ report });
addEventListener("error", ({ message }) => tell({ threw: message || "an error without a message" }));
addEventListener("unhandledrejection", ({ reason }) => tell({ threw: String(reason) }));

const { error } = console;
console.error = (...words) => {
  tell({ said: words.map(String).join(" ").slice(0, 2000) });
  error.apply(console, words);
};

// ask calls something in a thread, and returns the JSON of what it becomes.
const ask = async (expression, thread) => thread === "worker" ? globalThis.llmparityRelay(expression) : JSON.stringify(await call(expression));

// free destroys what the engine has on the GPU, and returns the JSON of what the ledger then reads.
async function free() {
  const thread = globalThis.llmparityRelay ? "worker" : "page";
  const ended = ask("llmparity.giveUp()", thread).catch(() => {}); // an engine that never started has nothing
  await Promise.race([ended, new Promise((done) => setTimeout(done, soon))]);
  return ask("llmparity.reading()", thread);
}

// What engines store would stay in the person's browser.
const emptied = async () => (await import("./storage.js")).empty();

addEventListener("message", async ({ data: { id, call: expression, thread, frees, empties }, source }) => {
  if (source !== parent || !id) return;
  try {
    if (empties) await emptied();
    tell({ id, json: empties ? undefined : frees ? await free() : await ask(expression, thread) });
  } catch (e) {
    tell({ id, thrown: String(e) });
  }
});

tell({ opened: true });
