// The page that allocates memory of one kind at a time, to find out which source sees it. It has the WebGPU ledger,
// but no engine. All memory is touched unless its kind says otherwise.

import "./ledger.js"; // must precede everything that uses WebGPU
import { adapter } from "./adapter.js";

const kept = []; // allocated memory
const filling = 7;
let device;
let worker;

// pieces calls make for each of n equal pieces, because a single one might be in another kind of memory.
const pieces = (n, bytes, make) => { for (let i = 0; i < n; i++) kept.push(make(bytes / n)); };

const storage = (size) => device.createBuffer({ size, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });

// write fills a buffer in small parts and waits for each, because data in transit is in shared memory of two
// processes.
async function write(buffer) {
  const part = new Uint8Array(1 << 20).fill(filling);
  for (let at = 0; at < buffer.size; at += part.length) device.queue.writeBuffer(buffer, at, part);
  await device.queue.onSubmittedWorkDone();
}

const textureSide = 1024; // 4 MiB with four bytes a texel

async function writeTexture(texture) {
  const rows = 256;
  const part = new Uint8Array(rows * textureSide * 4).fill(filling);
  for (let y = 0; y < textureSide; y += rows) {
    device.queue.writeTexture({ texture, origin: [0, y] }, part, { bytesPerRow: textureSide * 4 }, [textureSide, rows]);
  }
  await device.queue.onSubmittedWorkDone();
}

function filled(description) {
  const memory = new WebAssembly.Memory(description);
  new Uint8Array(memory.buffer).fill(filling);
  return memory;
}

// answer sends the worker a message and returns its answer.
const answer = (message) => new Promise((resolve, reject) => {
  worker.onmessage = resolve;
  worker.onerror = ({ message: text }) => reject(new Error(`the worker: ${text ?? "its script is missing"}`));
  worker.postMessage(message);
});

// The kinds by the host's names. An array element takes four bytes, because Chrome compresses pointers.
const kinds = {
  "arrays": (bytes) => pieces(16, bytes, (n) => new Array(n / 4).fill(filling)),
  "buffers": (bytes) => pieces(16, bytes, (n) => new Uint8Array(n).fill(filling)),
  "worker-buffers": (bytes) => answer({ bytes }),
  "wasm": (bytes) => pieces(1, bytes, (n) => filled({ initial: n / 65536 })),
  "wasm-shared": (bytes) => pieces(1, bytes, (n) => filled({ initial: n / 65536, maximum: n / 65536, shared: true })),
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

// prepare creates the device and the worker, which need memory themselves.
async function prepare() {
  const adapter = await navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });
  device = await adapter?.requestDevice();
  worker = new Worker("truth-worker.js", { type: "module", name: "llmparity" });
  await answer({ bytes: 0 });
}

// flush makes WebGPU free destroyed buffers and used staging memory, which happens with the next submit or the one
// after.
async function flush() {
  for (let i = 0; i < 3; i++) {
    device?.queue.submit([]);
    await device?.queue.onSubmittedWorkDone();
  }
}

// take allocates bytes of a kind and waits until nothing else is left.
async function take(kind, bytes) {
  await kinds[kind](bytes);
  await flush();
}

// drop leaves the allocated memory to be freed.
function drop() { for (const k of kept.splice(0)) k.destroy?.(); }

// giveBack frees the allocated memory.
async function giveBack() {
  drop();
  await answer({ bytes: 0 });
  await flush();
}

// reading is as in host.js; there is no KV cache.
const reading = async () => ({ ledger: await globalThis.llmparityLedger.read(), held: -1 });

globalThis.llmparity = { adapter, reading, prepare, take, giveBack, drop, flush, held: () => -1 };
globalThis.llmparityPage = { ready: async () => true };
