// The page in which llmparity takes memory of one kind after the other, to find out which source sees it. It has the ledger of WebGPU
// and no WebLLM. All that is taken is touched, unless its kind says that it is not.

import "./ledger.js"; // before all that uses WebGPU
import { adapter } from "./adapter.js";

const kept = []; // what is taken and not given back
const filling = 7;
let device;
let worker;

// pieces calls make for each of n equal pieces: one piece might lie where another kind of memory does.
const pieces = (n, bytes, make) => { for (let i = 0; i < n; i++) kept.push(make(bytes / n)); };

const storage = (size) => device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });

// write fills a buffer in small parts that are waited for: what is under way lies in memory that two processes share.
async function write(buffer) {
  const part = new Uint8Array(1 << 20).fill(filling);
  for (let at = 0; at < buffer.size; at += part.length) device.queue.writeBuffer(buffer, at, part);
  await device.queue.onSubmittedWorkDone();
}

const textureSide = 1024; // of four bytes a texel: 4 MiB

async function writeTexture(texture) {
  const rows = 256;
  const part = new Uint8Array(rows * textureSide * 4).fill(filling);
  for (let y = 0; y < textureSide; y += rows) {
    device.queue.writeTexture({ texture, origin: [0, y] }, part, { bytesPerRow: textureSide * 4 }, [textureSide, rows]);
  }
  await device.queue.onSubmittedWorkDone();
}

// answer is what the worker answers to a message.
const answer = (message) => new Promise((resolve, reject) => {
  worker.onmessage = resolve;
  worker.onerror = ({ message: text }) => reject(new Error(`the worker: ${text ?? "its script is missing"}`));
  worker.postMessage(message);
});

// The kinds, by the names that the host has for them. An element of an array takes four bytes, as Chrome's pointers are compressed.
const kinds = {
  "arrays": (bytes) => pieces(16, bytes, (n) => new Array(n / 4).fill(filling)),
  "buffers": (bytes) => pieces(16, bytes, (n) => new Uint8Array(n).fill(filling)),
  "worker-buffers": (bytes) => answer({ bytes }),
  "wasm": (bytes) => pieces(1, bytes, (n) => {
    const memory = new WebAssembly.Memory({ initial: n / 65536 });
    new Uint8Array(memory.buffer).fill(filling);
    return memory;
  }),
  "wasm-untouched": (bytes) => pieces(1, bytes, (n) => new WebAssembly.Memory({ initial: n / 65536 })),
  "gpu-buffers": async (bytes) => {
    pieces(4, bytes, storage);
    for (const b of kept) await write(b);
  },
  "gpu-buffers-untouched": (bytes) => pieces(4, bytes, storage),
  "gpu-textures": async (bytes) => {
    pieces(bytes / (4 * textureSide ** 2), bytes, () => device.createTexture({
      size: [textureSide, textureSide], format: "rgba8unorm", usage: GPUTextureUsage.TEXTURE_BINDING | GPUTextureUsage.COPY_DST,
    }));
    for (const t of kept) await writeTexture(t);
  },
};

// prepare gets what taking needs and takes memory itself: the device and the worker.
async function prepare() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  device = await adapter?.requestDevice();
  worker = new Worker("truth-worker.js", { type: "module", name: "llmparity" });
  await answer({ bytes: 0 });
}

// flush has WebGPU free what it is done with: a buffer that was destroyed, and the memory by which something was written, go behind the
// next submit, or the one after.
async function flush() {
  for (let i = 0; i < 3; i++) {
    device?.queue.submit([]);
    await device?.queue.onSubmittedWorkDone();
  }
}

// take takes bytes of a kind, and resolves when they are there and nothing else is.
async function take(kind, bytes) {
  await kinds[kind](bytes);
  await flush();
}

// giveBack frees what was taken.
async function giveBack() {
  for (const k of kept.splice(0)) k.destroy?.();
  await answer({ bytes: 0 });
  await flush();
}

globalThis.llmparity = { adapter, prepare, take, giveBack, held: () => -1 }; // no KV cache
globalThis.llmparityPage = { started: Promise.resolve() };
