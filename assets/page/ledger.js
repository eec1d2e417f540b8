// A ledger of the WebGPU buffers, textures and query sets of every device in this realm (page or worker), from request
// to release. Import it before anything that uses WebGPU.
//
// A size counts as requested, from the request on, if WebGPU can grant it; the ledger cannot see what a driver adds,
// keeps or frees later. It also cannot see textures of canvases and videos, the staging memory of mapped buffers, and
// pipelines. Error scopes of the page catch exactly what they would without the ledger.

const proto = {
  device: globalThis.GPUDevice?.prototype,
  buffer: globalThis.GPUBuffer?.prototype,
  pass: globalThis.GPUComputePassEncoder?.prototype,
  texture: globalThis.GPUTexture?.prototype,
  querySet: globalThis.GPUQuerySet?.prototype,
};

// The browser's own functions, which the ledger itself calls.
const { createBuffer, createTexture, createQuerySet, pushErrorScope, popErrorScope, destroy: destroyDevice } = proto.device ?? {};

const entries = new WeakMap(); // object -> its entry, which must not reference the object
const states = new WeakMap(); // device -> its state
const live = new Set(); // counted entries
const dropped = new FinalizationRegistry((entry) => release(entry, "dropped"));

// Sums of live objects, and counts since the start.
const sums = {
  bytes: 0, bufferBytes: 0, buffers: 0, textureBytes: 0, textures: 0, querySets: 0, queries: 0,
  created: 0, destroyed: 0, dropped: 0, lost: 0, refused: 0, uncertain: 0,
};
let dispatches = 0; // compute dispatches recorded since the start, which show that WebGPU computes
let peak = 0; // peak bytes since the start
let peakSinceMark = 0; // since the last mark
let peakSinceRead = 0; // since the last read
let stage = ""; // current load stage
let past; // during a load: alternating times and live bytes

// stateOf caches what is needed of a device.
function stateOf(device) {
  let state = states.get(device);
  if (!state) {
    state = {
      maxBufferSize: device.limits.maxBufferSize,
      freeUsage: device.features.has("buffer-map-extended-usages"),
      gone: false,
      scopes: [], // the page's open error scopes
      foreseen: 0, // expected errors of immediately refused objects, outside of all scopes
    };
    states.set(device, state);
    device.lost.then(() => releaseAll(state));
    device.addEventListener("uncapturederror", (event) => own.has(event.error) || blame(state, undefined, event.error));
  }
  return state;
}

const allUsages = Object.entries(globalThis.GPUBufferUsage ?? {});
const anyUsage = allUsages.reduce((all, [, bit]) => all | bit, 0);

// grantable reports whether WebGPU's rules allow a buffer. A forbidden buffer is returned too, with the requested size but
// without memory.
function grantable(state, size, usage) {
  if (size > state.maxBufferSize || usage === 0 || (usage & ~anyUsage) !== 0) return false;
  const { MAP_READ, MAP_WRITE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  if (state.freeUsage) return true;
  if (usage & MAP_READ) return (usage & ~(MAP_READ | COPY_DST)) === 0;
  if (usage & MAP_WRITE) return (usage & ~(MAP_WRITE | COPY_SRC)) === 0;
  return true;
}

function count(state, object, entry) {
  entry.state = state;
  entry.stage = stage;
  entry.live = true;
  entries.set(object, entry);
  dropped.register(object, entry, entry);
  live.add(entry);
  sums.created++;
  add(entry, 1);
  if (sums.bytes > peakSinceRead) {
    peakSinceRead = sums.bytes;
    if (sums.bytes > peakSinceMark) peakSinceMark = sums.bytes;
    if (sums.bytes > peak) peak = sums.bytes;
  }
  for (const scope of innermost(state)) scope.made.push(entry);
}

function add({ kind, bytes, queries }, sign) {
  sums.bytes += sign * bytes;
  if (past && past.length < mostPast && Math.abs(sums.bytes - past.at(-1)) >= large) remember();
  if (kind === "buffer") {
    sums.bufferBytes += sign * bytes;
    sums.buffers += sign;
  } else if (kind === "texture") {
    sums.textureBytes += sign * bytes;
    sums.textures += sign;
  } else {
    sums.querySets += sign;
    sums.queries += sign * queries;
  }
}

function release(entry, how) {
  if (!entry?.live) return;
  entry.live = false;
  live.delete(entry);
  dropped.unregister(entry);
  add(entry, -1);
  sums[how]++;
  if (how === "refused") sums.created--; // it never was
}

function releaseAll(state) {
  if (state.gone) return;
  state.gone = true;
  for (const entry of live) if (entry.state === state) release(entry, "lost");
}

// Error scopes. Only they report, and later, that memory ran out or another rule was broken. The page's own scopes are
// watched, not used; if it has none, the ledger opens its own for large or rare objects.

const filters = ["out-of-memory", "validation"];
const own = new WeakSet(); // errors caught by the ledger's own scopes

// innermost returns the open scopes that would catch an error now, one per filter.
function innermost({ scopes }) {
  if (scopes.length === 0) return scopes;
  return ["out-of-memory", "validation", "internal"].map((f) => scopes.findLast(({ filter }) => filter === f)).filter(Boolean);
}

// foresee records that an immediately refused object will cause an error.
function foresee(state) {
  sums.refused++;
  const scope = state.scopes.findLast(({ filter }) => filter === "validation");
  if (scope) scope.foreseen = true;
  else state.foreseen++;
}

// blame releases the object that caused an error, if only one was made in the scope.
function blame(state, scope, error) {
  const memory = error instanceof GPUOutOfMemoryError;
  if (!memory && !/Create(Buffer|Texture|QuerySet)/.test(error.message)) return;
  if (!memory && scope?.foreseen) return;
  if (!memory && !scope && state.foreseen > 0) {
    state.foreseen--;
    return;
  }
  if (scope?.made.length === 1) release(scope.made[0], "refused");
  else sums.uncertain++;
}

// make creates an object, in the ledger's own scopes if the page has none. Errors are then dispatched as without the
// scopes.
function make(device, state, create, descriptor, entryOf, watched) {
  if (!watched || state.scopes.length > 0 || state.gone) {
    const object = create.call(device, descriptor);
    const entry = state.gone ? undefined : entryOf(object);
    if (entry) count(state, object, entry);
    return object;
  }
  for (const filter of filters) pushErrorScope.call(device, filter);
  let object, entry;
  try {
    object = create.call(device, descriptor);
    entry = entryOf(object);
    if (entry) count(state, object, entry);
  } finally {
    for (const _ of filters) {
      popErrorScope.call(device).then((error) => {
        if (!error) return;
        release(entry, "refused");
        own.add(error);
        device.dispatchEvent(new GPUUncapturedErrorEvent("uncapturederror", { error, cancelable: true }));
      }, () => {}); // the device is lost
    }
  }
  return object;
}

// Small buffers are frequent and never fail alone.
const large = 1 << 20;

function bufferEntry(state, descriptor, buffer) {
  const { size, usage } = buffer;
  if (!grantable(state, size, usage)) {
    foresee(state);
    return undefined;
  }
  return { kind: "buffer", bytes: size, usage, label: descriptor.label ?? "" };
}

// Bytes of a texel block and its width and height. Combined formats are the sum of their parts; depth24plus counts as
// 4 bytes.
const blocks = {
  1: "r8unorm r8snorm r8uint r8sint stencil8",
  2: "r16unorm r16snorm r16uint r16sint r16float rg8unorm rg8snorm rg8uint rg8sint depth16unorm",
  4: "r32uint r32sint r32float rg16unorm rg16snorm rg16uint rg16sint rg16float rgba8unorm rgba8unorm-srgb rgba8snorm rgba8uint " +
    "rgba8sint bgra8unorm bgra8unorm-srgb rgb9e5ufloat rgb10a2uint rgb10a2unorm rg11b10ufloat depth24plus depth32float",
  5: "depth24plus-stencil8 depth32float-stencil8",
  8: "rg32uint rg32sint rg32float rgba16unorm rgba16snorm rgba16uint rgba16sint rgba16float",
  16: "rgba32uint rgba32sint rgba32float",
};
const formats = new Map(Object.entries(blocks).flatMap(([bytes, names]) => names.split(" ").map((name) => [name, [Number(bytes), 1, 1]])));

function block(format) {
  const known = formats.get(format);
  if (known) return known;
  const bc = /^bc([1-7])-/.exec(format);
  if (bc) return [bc[1] === "1" || bc[1] === "4" ? 8 : 16, 4, 4];
  if (/^(etc2-rgb8|eac-r11)/.test(format)) return [8, 4, 4];
  if (/^(etc2-rgba8|eac-rg11)/.test(format)) return [16, 4, 4];
  const astc = /^astc-(\d+)x(\d+)-/.exec(format);
  if (astc) return [16, Number(astc[1]), Number(astc[2])];
  return undefined;
}

// textureBytes sums mip levels of all layers and samples.
function textureBytes({ format, width, height, depthOrArrayLayers, mipLevelCount, sampleCount, dimension }) {
  const known = block(format);
  if (!known) return undefined;
  const [bytes, w, h] = known;
  let sum = 0;
  for (let level = 0; level < mipLevelCount; level++) {
    const across = Math.ceil(Math.max(1, width >> level) / w), down = Math.ceil(Math.max(1, height >> level) / h);
    const deep = dimension === "3d" ? Math.max(1, depthOrArrayLayers >> level) : depthOrArrayLayers;
    sum += across * down * deep * bytes;
  }
  return sum * sampleCount;
}

function textureEntry(descriptor, texture) {
  const bytes = textureBytes(texture);
  if (bytes === undefined) sums.uncertain++; // an unknown format
  return { kind: "texture", bytes: bytes ?? 0, usage: texture.usage, label: descriptor.label ?? "" };
}

const querySetEntry = (descriptor, { count }) => ({ kind: "querySet", bytes: 0, queries: count, usage: 0, label: descriptor.label ?? "" });

if (proto.device) {
  proto.device.createBuffer = function createBuffer_(descriptor) {
    const state = stateOf(this);
    return make(this, state, createBuffer, descriptor, (b) => bufferEntry(state, descriptor, b),
      descriptor?.size >= large && grantable(state, descriptor.size, descriptor.usage));
  };
  proto.device.createTexture = function createTexture_(descriptor) {
    return make(this, stateOf(this), createTexture, descriptor, (t) => textureEntry(descriptor, t), true);
  };
  proto.device.createQuerySet = function createQuerySet_(descriptor) {
    return make(this, stateOf(this), createQuerySet, descriptor, (q) => querySetEntry(descriptor, q), true);
  };
  proto.device.pushErrorScope = function pushErrorScope_(filter) {
    const result = pushErrorScope.call(this, filter); // throws for an unknown filter
    stateOf(this).scopes.push({ filter, made: [], foreseen: false });
    return result;
  };
  proto.device.popErrorScope = function popErrorScope_() {
    const state = stateOf(this), scope = state.scopes.pop();
    const error = popErrorScope.call(this);
    if (scope?.made.length) error.then((e) => e && blame(state, scope, e), () => {});
    return error;
  };
  proto.device.destroy = function destroy_() {
    releaseAll(stateOf(this));
    return destroyDevice.call(this);
  };
  const { dispatchWorkgroups, dispatchWorkgroupsIndirect } = proto.pass;
  proto.pass.dispatchWorkgroups = function dispatchWorkgroups_(x, y, z) {
    dispatches++;
    return dispatchWorkgroups.call(this, x, y, z);
  };
  proto.pass.dispatchWorkgroupsIndirect = function dispatchWorkgroupsIndirect_(buffer, offset) {
    dispatches++;
    return dispatchWorkgroupsIndirect.call(this, buffer, offset);
  };
  for (const p of [proto.buffer, proto.texture, proto.querySet]) {
    const { destroy } = p;
    p.destroy = function destroy_() {
      release(entries.get(this), "destroyed");
      return destroy.call(this);
    };
  }
}

// names lists a buffer's usage flags.
function names(usage) {
  return allUsages.filter(([, bit]) => usage & bit).map(([name]) => name.toLowerCase()).join("+");
}

// tally groups live entries by a key.
function tally(keyOf) {
  const groups = new Map();
  for (const entry of live) {
    const key = keyOf(entry);
    if (!key) continue;
    const group = groups.get(key) ?? { bytes: 0, count: 0 };
    group.bytes += entry.bytes;
    group.count++;
    groups.set(key, group);
  }
  return [...groups];
}

const mostLabels = 32; // the page may give every buffer another label

// read returns all figures by their names in records, also by buffer usage and by label, and live objects grouped by
// load stage, kind, usage and size.
function read() {
  peakSinceRead = sums.bytes;
  const figures = {
    live_bytes: sums.bytes, live_count: live.size, page_peak_bytes: peak, phase_peak_bytes: peakSinceMark,
    buffer_bytes: sums.bufferBytes, buffer_count: sums.buffers, texture_bytes: sums.textureBytes, texture_count: sums.textures,
    query_set_count: sums.querySets, query_count: sums.queries, created_count: sums.created,
    released_count: sums.destroyed + sums.dropped + sums.lost, destroyed_count: sums.destroyed, dropped_count: sums.dropped,
    lost_count: sums.lost, refused_count: sums.refused, uncertain_count: sums.uncertain, dispatch_count: dispatches,
  };
  for (const [usage, { bytes, count }] of tally((e) => e.kind === "buffer" && names(e.usage))) {
    figures[`usage.${usage}_bytes`] = bytes;
    figures[`usage.${usage}_count`] = count;
  }
  for (const [label, { bytes }] of tally((e) => e.label.trim()).slice(0, mostLabels)) figures[`label.${label}_bytes`] = bytes;
  const groups = new Map();
  for (const { stage, kind, usage, bytes } of live) {
    const key = `${stage} ${kind} ${usage} ${bytes}`;
    const group = groups.get(key);
    if (group) group.count++;
    else groups.set(key, { stage, kind, usage, bytes, count: 1 });
  }
  return { figures, groups: [...groups.values()] };
}

// brief returns what may change with each token, in a fixed order: time, live bytes, live objects, peak bytes since
// the last read, created, released.
function brief() {
  const at = performance.timeOrigin + performance.now();
  const highest = peakSinceRead;
  peakSinceRead = sums.bytes;
  return [at, sums.bytes, live.size, highest, sums.created, sums.destroyed + sums.dropped + sums.lost];
}

// mark restarts the phase's peak.
function mark() {
  peakSinceMark = sums.bytes;
}

// enter sets the stage of the objects made from now on.
function enter(name) {
  stage = name;
  if (name === "fetch") past = [];
  if (past) remember();
}

const mostPast = 2048; // numbers

const remember = () => past.push(performance.timeOrigin + performance.now(), sums.bytes);

// history returns and clears the live bytes during the last load.
function history() {
  const told = past ?? [];
  past = undefined;
  return told;
}

// Heap figures leave out WebAssembly memories, so they are tracked where they are made or exported, and measured on
// request. Collected ones are dropped.
const memories = new Set(); // of WeakRef
const known = new WeakSet();

function keep(memory) {
  if (!(memory instanceof WebAssembly.Memory) || known.has(memory)) return;
  known.add(memory);
  memories.add(new WeakRef(memory));
}

const keepExports = ({ exports }) => Object.values(exports).forEach(keep);

// watchConstructor calls see for every object that new creates.
const watchConstructor = (name, see) => {
  WebAssembly[name] = new Proxy(WebAssembly[name], {
    construct(target, args, newTarget) {
      const object = Reflect.construct(target, args, newTarget);
      see(object);
      return object;
    },
  });
};

// watchPromise watches the results of instantiations: an instance, or an instance with its module.
const watchPromise = (name) => {
  const original = WebAssembly[name];
  WebAssembly[name] = function (...args) {
    const result = original.apply(this, args);
    result.then((r) => keepExports(r.instance ?? r), () => {});
    return result;
  };
};

watchConstructor("Memory", keep);
watchConstructor("Instance", keepExports);
["instantiate", "instantiateStreaming"].forEach(watchPromise);

// wasm returns the bytes and number of existing memories, and the bytes of those that threads share.
function wasm() {
  let bytes = 0, count = 0, shared = 0;
  for (const ref of memories) {
    const memory = ref.deref();
    if (!memory) {
      memories.delete(ref);
      continue;
    }
    const { byteLength, constructor } = memory.buffer;
    bytes += byteLength;
    if (constructor.name === "SharedArrayBuffer") shared += byteLength;
    count++;
  }
  return { bytes, count, shared };
}

export const ledger = { read, brief, mark, enter, history, wasm };
globalThis.llmparityLedger = ledger;
