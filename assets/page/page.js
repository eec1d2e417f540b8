// The page that llmparity opens. With ?thread=worker, the engine runs in a worker of the page, otherwise on the page's own
// thread, both by host.js, which reads the rest of the query.

const state = document.getElementById("state");
const show = (text) => { state.textContent = text; };

// inWorker starts the worker, which reports its status in messages.
function inWorker() {
  const worker = new Worker(`worker.js${location.search}`, { type: "module", name: "llmparity" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { text, started, failed } }) => {
      if (text) show(text);
      if (started) resolve();
      if (failed) reject(new Error(failed));
    };
    worker.onerror = ({ message }) => reject(new Error(`cannot start the worker: ${message ?? "its script is missing"}`));
  });
}

const here = async () => (await import("./host.js")).start(show);

const started = new URLSearchParams(location.search).get("thread") === "worker" ? inWorker() : here();
started.catch(({ message }) => show(message)); // awaiting callers get the error too

globalThis.llmparityPage = { started };
