// Times of WebGPU kernels, for a profile, and the buffers from the page's begin on. It is imported only then, after the ledger and
// before the engine, on the thread on which the engine computes. Each dispatch gets a compute pass of its own, with a timestamp at
// either end, which takes time. Nothing is timed until on() is called.
//
// Passes of the engine that have timestamps of their own lose them. Kernels of indirect dispatches are timed like others.

const now = () => performance.timeOrigin + performance.now();

const { createBindGroup, createComputePipeline, createComputePipelineAsync, createShaderModule } = GPUDevice.prototype;
const { createQuerySet, createBuffer, createCommandEncoder, pushErrorScope, popErrorScope } = GPUDevice.prototype;
const { beginComputePass } = GPUCommandEncoder.prototype;
const ledger = globalThis.llmparityLedger; // of this thread

const names = new Map(); // kernel -> its number
const kernelOf = new WeakMap(); // pipeline -> its kernel's number
const deviceOf = new WeakMap(); // command encoder -> its device
const boundOf = new WeakMap(); // bind group -> bytes
const labelOf = new WeakMap(); // shader module -> its label

let timing = false;
const made = { modules: { count: 0, ms: 0, pending: 0 }, pipelines: { count: 0, ms: 0, pending: 0 } };
let chunks = []; // of timestamps: { device, set, dispatches }
let answers = []; // when a buffer was mapped, and how many dispatches had been recorded when that was asked for, in turn
let recorded = 0; // dispatches
let without = false; // the device has no timestamps
const perChunk = 2048; // WebGPU allows 4096 timestamps in a set
let held = []; // the ledger's groups of live buffers at several times
let between = 50; // ms between two of them, at least
const mostHeld = 1024;

// request adds the feature that timestamps need.
const { requestDevice } = GPUAdapter.prototype;
GPUAdapter.prototype.requestDevice = function (wanted) {
  const requiredFeatures = [...(wanted?.requiredFeatures ?? [])];
  if (this.features.has("timestamp-query")) requiredFeatures.push("timestamp-query");
  return requestDevice.call(this, { ...wanted, requiredFeatures: [...new Set(requiredFeatures)] });
};

// look notes what is in buffers, if that has changed.
function look() {
  const at = now(), last = held.at(-1);
  if (last && at - last.at < between) return;
  const { figures: { created_count: created, released_count: released }, groups } = ledger.read();
  if (last?.changes !== created + released) held.push({ at, changes: created + released, groups });
  if (held.length < mostHeld) return;
  held = held.filter((_, i) => i % 2 === 0);
  between *= 2;
}

function numberOf(name) {
  if (!names.has(name)) names.set(name, names.size);
  return names.get(name);
}

// named notes which kernel a pipeline runs: its own label, or the name of its shader or of its function.
function named(pipeline, { label, compute: { module, entryPoint } }) {
  const plain = !entryPoint || /^(main|main_|cs_main)$/.test(entryPoint);
  kernelOf.set(pipeline, numberOf(plain ? label || labelOf.get(module) || "main" : entryPoint));
  return pipeline;
}

// making counts what is made, and the time in which at least one is: the browser makes several at once. Its answers come after
// what it was asked before, and when this thread listens.
function making(what, ready) {
  const m = made[what];
  m.count++;
  if (m.pending++ === 0) m.since = now();
  const end = () => { if (--m.pending === 0) m.ms += now() - m.since; };
  ready.then(end, end);
}

GPUDevice.prototype.createShaderModule = function (descriptor) {
  const module = createShaderModule.call(this, descriptor);
  making("modules", module.getCompilationInfo());
  labelOf.set(module, descriptor.label);
  return module;
};
// A pipeline is there at once, but the browser makes it later. It answers for the error scope after that.
GPUDevice.prototype.createComputePipeline = function (descriptor) {
  pushErrorScope.call(this, "out-of-memory"); // which no pipeline causes, so no error is kept from the engine
  const pipeline = createComputePipeline.call(this, descriptor);
  making("pipelines", popErrorScope.call(this));
  return named(pipeline, descriptor);
};
GPUDevice.prototype.createComputePipelineAsync = function (descriptor) {
  const pipeline = createComputePipelineAsync.call(this, descriptor);
  making("pipelines", pipeline);
  return pipeline.then((p) => named(p, descriptor));
};
GPUDevice.prototype.createBindGroup = function (descriptor) {
  const group = createBindGroup.call(this, descriptor);
  let bytes = 0;
  for (const { resource } of descriptor.entries) {
    const buffer = resource.buffer ?? resource;
    if (buffer instanceof GPUBuffer) bytes += resource.size ?? buffer.size - (resource.offset ?? 0);
  }
  boundOf.set(group, bytes);
  return group;
};
GPUDevice.prototype.createBuffer = function (descriptor) {
  const buffer = createBuffer.call(this, descriptor);
  look();
  return buffer;
};
GPUDevice.prototype.createCommandEncoder = function (...args) {
  const encoder = createCommandEncoder.apply(this, args);
  deviceOf.set(encoder, this);
  return encoder;
};

// A buffer is mapped after what was submitted before it was asked for. That bounds the difference of the clocks.
const { mapAsync } = GPUBuffer.prototype;
GPUBuffer.prototype.mapAsync = function (...args) {
  const result = mapAsync.apply(this, args), before = recorded;
  look();
  if (timing) result.then(() => answers.push(now(), before), () => {});
  return result;
};

// place returns the next pair of timestamps of a device.
function place(device) {
  let chunk = chunks.findLast((c) => c.device === device);
  if (!chunk || chunk.dispatches.length === perChunk) {
    chunk = { device, set: createQuerySet.call(device, { type: "timestamp", count: 2 * perChunk }), dispatches: [] };
    chunks.push(chunk);
  }
  return chunk;
}

// Pass stands for a compute pass. Each dispatch becomes a real one.
class Pass {
  #encoder; #descriptor; #pipeline; #groups = new Map();

  constructor(encoder, descriptor) {
    this.#encoder = encoder;
    this.#descriptor = descriptor;
    this.label = descriptor?.label ?? "";
  }

  setPipeline(pipeline) { this.#pipeline = pipeline; }

  setBindGroup(index, ...group) { this.#groups.set(index, group); }

  dispatchWorkgroups(...size) { this.#run((pass) => pass.dispatchWorkgroups(...size)); }

  dispatchWorkgroupsIndirect(...from) { this.#run((pass) => pass.dispatchWorkgroupsIndirect(...from)); }

  pushDebugGroup() {}

  popDebugGroup() {}

  insertDebugMarker() {}

  end() {}

  #run(dispatch) {
    const { set, dispatches } = place(deviceOf.get(this.#encoder));
    const at = 2 * dispatches.length;
    const pass = beginComputePass.call(this.#encoder, { ...this.#descriptor, timestampWrites:
      { querySet: set, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 } });
    let bytes = 0;
    for (const [index, group] of this.#groups) {
      pass.setBindGroup(index, ...group);
      bytes += boundOf.get(group[0]) ?? 0;
    }
    pass.setPipeline(this.#pipeline);
    dispatch(pass);
    pass.end();
    recorded++;
    dispatches.push([kernelOf.get(this.#pipeline) ?? numberOf("unnamed"), now(), bytes]);
  }
}

GPUCommandEncoder.prototype.beginComputePass = function (descriptor) {
  const device = deviceOf.get(this);
  without = timing && !device?.features.has("timestamp-query");
  return timing && !without ? new Pass(this, descriptor) : beginComputePass.call(this, descriptor);
};

// read copies the timestamps of a set, in nanoseconds of the GPU's clock.
async function read(device, set, count) {
  const size = 8 * count;
  const buffer = (usage) => createBuffer.call(device, { size, usage });
  const from = buffer(GPUBufferUsage.QUERY_RESOLVE | GPUBufferUsage.COPY_SRC), to = buffer(GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST);
  const encoder = createCommandEncoder.call(device);
  encoder.resolveQuerySet(set, 0, count, from, 0);
  encoder.copyBufferToBuffer(from, 0, to, 0, size);
  device.queue.submit([encoder.finish()]);
  await mapAsync.call(to, GPUMapMode.READ);
  const values = new BigUint64Array(to.getMappedRange().slice(0));
  [from, to].forEach((b) => b.destroy());
  set.destroy();
  return values;
}

// What an adapter can do at most: a copy that does nothing else, and multiplications and additions of registers.
const threads = 1 << 16, times = 512;
const plainly = `
@group(0) @binding(0) var<storage, read> taken: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> given: array<vec4<f32>>;

@compute @workgroup_size(64) fn copy(@builtin(global_invocation_id) id: vec3<u32>) {
  for (var i = id.x; i < arrayLength(&given); i += ${threads}u) { given[i] = taken[i]; }
}

@compute @workgroup_size(64) fn multiply(@builtin(global_invocation_id) id: vec3<u32>) {
  let by = taken[0]; // zeros, which no compiler knows
  var a = vec4(f32(id.x)); var b = a + 1; var c = a + 2; var d = a + 3;
  for (var i = 0; i < ${times}; i++) { a = fma(a, by, a); b = fma(b, by, b); c = fma(c, by, c); d = fma(d, by, d); }
  given[id.x] = a + b + c + d;
}`;
const most = 64 << 20; // bytes of a buffer: caches hold less
const tries = 3;

// reach measures that while nothing else computes; undefined: there is no memory for it.
async function reach(device) {
  const size = Math.min(most, device.limits.maxStorageBufferBindingSize, device.limits.maxBufferSize);
  pushErrorScope.call(device, "out-of-memory");
  const buffers = [0, 1].map(() => createBuffer.call(device, { size, usage: GPUBufferUsage.STORAGE }));
  const set = createQuerySet.call(device, { type: "timestamp", count: 4 * tries });
  const module = createShaderModule.call(device, { code: plainly });
  const encoder = createCommandEncoder.call(device);
  ["copy", "multiply"].forEach((entryPoint, which) => {
    const pipeline = createComputePipeline.call(device, { layout: "auto", compute: { module, entryPoint } });
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const group = createBindGroup.call(device, { layout: pipeline.getBindGroupLayout(0), entries });
    for (let i = 0; i < tries; i++) {
      const at = 2 * (which * tries + i);
      const pass = beginComputePass.call(encoder, { timestampWrites: { querySet: set, beginningOfPassWriteIndex: at, endOfPassWriteIndex: at + 1 } });
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(threads / 64);
      pass.end();
    }
  });
  device.queue.submit([encoder.finish()]);
  const failed = await popErrorScope.call(device);
  const values = failed ? [] : await read(device, set, 4 * tries);
  buffers.forEach((b) => b.destroy());
  if (failed) return undefined;
  const took = [...Array(2 * tries).keys()].map((i) => Number(values[2 * i + 1] - values[2 * i]));
  return { bytes: 2 * size, copyNs: Math.min(...took.slice(0, tries)), flop: threads * times * 4 * 4 * 2, multiplyNs: Math.min(...took.slice(tries)) };
}

globalThis.llmparityKernels = {
  on() {
    timing = true;
    [chunks, answers, recorded, without] = [[], [], 0, false];
    return true;
  },

  // take ends the timing. A dispatch is its kernel, when it was recorded, its bound bytes, and when the GPU began and ended it,
  // in nanoseconds after the first; one that was never submitted has no times.
  async take() {
    timing = false;
    look();
    if (without) return { without };
    const out = [], all = chunks.splice(0);
    let first;
    for (const { device, set, dispatches } of all) {
      const values = await read(device, set, 2 * dispatches.length);
      dispatches.forEach(([kernel, at, bytes], i) => {
        const [begin, end] = [values[2 * i], values[2 * i + 1]];
        if (end) first ??= begin;
        out.push([kernel, at, bytes, ...(end ? [Number(begin - first), Number(end - first)] : [-1, -1])]);
      });
    }
    return { kernels: [...names.keys()], dispatches: out, answers, made, held, reach: all.length ? await reach(all.at(-1).device) : undefined };
  },
};
