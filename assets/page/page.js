// The page that llmparity opens. Where its address asks for it (?thread=worker), WebLLM runs in a worker of the page's, else on the
// page's own thread; either way engine.js has it.

const state = document.getElementById("state");
const show = (text) => { state.textContent = text; };

// inWorker starts the worker, which tells what it does in messages until its engine is called by the host.
function inWorker() {
  const worker = new Worker("worker.js", { type: "module", name: "llmparity" });
  return new Promise((resolve, reject) => {
    worker.onmessage = ({ data: { text, started, failed } }) => {
      if (text) show(text);
      if (started) resolve();
      if (failed) reject(new Error(failed));
    };
    worker.onerror = ({ message }) => reject(new Error(`the worker can't be started: ${message ?? "its script is missing"}`));
  });
}

const here = async () => (await import("./engine.js")).start(show);

const started = new URLSearchParams(location.search).get("thread") === "worker" ? inWorker() : here();
started.catch(({ message }) => show(message)); // whoever awaits it sees the error too

globalThis.llmparityPage = { started };
