import { WebLLMProfiler } from "./webllm-profiler.js";
import { model, options, maxTokens } from "./config.js";

const at = (id) => document.getElementById(id);
const show = (what) => { at("shown").textContent = typeof what === "string" ? what : JSON.stringify(what, null, 2); };
const profiler = new WebLLMProfiler(model, { ...options, onToken: (count) => show(`${count} tokens`) });
let stop;

at("generate").onclick = async () => {
  stop = new AbortController();
  const { signal } = stop;
  try {
    show("Loading …");
    if (!profiler.summary().load) await profiler.initialize({ signal });
    await profiler.complete(at("prompt").value, { max_gen_len: maxTokens, signal });
    show(profiler.summary());
  } catch (e) {
    show(`${e.name}: ${e.message}`);
  }
};
at("stop").onclick = () => stop?.abort();
at("save").onclick = () => profiler.downloadCSV();
