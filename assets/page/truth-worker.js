// The worker of the page that allocates memory, in a separate isolate.

import { ledger } from "./ledger.js"; // must precede everything that uses WebGPU

const kept = [];

// Each message frees the previous allocation, allocates bytes of array buffers and onGPU bytes of a WebGPU buffer, and
// returns the ledger.
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
