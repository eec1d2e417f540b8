// What this browser and device are, and what they offer.

import { adapter } from "./own/adapter.js";

const id = () => {
  try {
    return (localStorage.llmparity ??= crypto.randomUUID());
  } catch {
    return ""; // it keeps nothing
  }
};

const platform = () => navigator.userAgentData?.platform || navigator.platform || "an unknown system";

let gpu; // the adapter; null: there is none

// about is what llmparity records of the browser.
export const about = (async () => {
  gpu = await adapter().catch(() => null);
  const name = gpu ? [gpu.vendor, gpu.architecture, gpu.device, gpu.description].filter(Boolean).join(" ") || "unnamed adapter" : "";
  const cores = navigator.hardwareConcurrency ?? 0, memory = navigator.deviceMemory ?? 0;
  return {
    features: { webgpu: Boolean(gpu), "shader-f16": gpu?.features.includes("shader-f16") }, who: `${platform()}, ${cores} cores${memory ? `, ${memory} GiB or more` : ""}. ${navigator.userAgent}`,
    about: { id: id(), agent: navigator.userAgent, platform: platform(), cores, memory, screen: `${screen.width}x${screen.height}`, adapter: name },
  };
})();

// offers are lines: whether it is there, and what follows.
export function offers() {
  const can = (has, yes, no) => [Boolean(has), has ? yes : no];
  return [
    can(gpu, `WebGPU: ${gpu?.fallback ? "a software adapter, on the CPU" : "yes"}`,
      "No WebGPU: WebLLM cannot run. wllama and transformers.js can, in WebAssembly on the CPU."),
    ...(gpu ? [can(gpu.features.includes("shader-f16"), "float16 shaders (shader-f16): yes",
      "No float16 shaders (shader-f16): models and settings in f16 cannot run. f32 can.")] : []),
    can(globalThis.isSecureContext && globalThis.crossOriginIsolated, "Threads and precise times (cross-origin isolation): yes",
      "The page is not isolated: one thread, and times are rounded."),
    can(performance.memory, "Size of the JavaScript heap: yes", "The browser does not tell the size of its JavaScript heap, so that figure is absent."),
    can(navigator.storage?.getDirectory, "Storage for models (OPFS): yes", "No file storage (OPFS): models are kept elsewhere, or loaded again each time."),
  ];
}
