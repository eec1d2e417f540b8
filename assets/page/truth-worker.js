// The worker of the page in which llmparity takes memory: what it takes is in another isolate than the page's.

import { ledger } from "./ledger.js"; // before all that uses WebGPU

const kept = [];

// It gives back what it took before, takes bytes of array buffers, and onGPU bytes of a WebGPU buffer; it answers with its ledger.
onmessage = async ({ data: { bytes, onGPU } }) => {
  for (const k of kept.splice(0)) k.destroy?.();
  const n = 16;
  for (let i = 0; bytes > 0 && i < n; i++) kept.push(new Uint8Array(bytes / n).fill(7));
  if (onGPU > 0) {
    const device = await (await navigator.gpu.requestAdapter()).requestDevice();
    kept.push(device.createBuffer({ size: onGPU, usage: GPUBufferUsage.STORAGE }));
  }
  postMessage(ledger.read());
};
