// A ledger of what WebGPU was asked for and has not given back: buffers, textures and query sets of every device in this realm, a
// page's or a worker's. It must be imported before whatever uses WebGPU.
//
// A size is counted as it was asked for, when it was asked for, if WebGPU can grant it; what a driver adds, keeps or frees later is
// not seen. Not seen either: canvases' and videos' textures, the staging memory of mapped buffers, pipelines. Error scopes of the
// page's own code see exactly what they would see without the ledger.

const proto = {
  device: globalThis.GPUDevice?.prototype,
  buffer: globalThis.GPUBuffer?.prototype,
  texture: globalThis.GPUTexture?.prototype,
  querySet: globalThis.GPUQuerySet?.prototype,
};

// The functions as the browser has them. The ledger itself calls these alone.
const { createBuffer, createTexture, createQuerySet, pushErrorScope, popErrorScope, destroy: destroyDevice } = proto.device ?? {};

const entries = new WeakMap(); // object -> its entry, which must not refer to the object
const states = new WeakMap(); // device -> its state
const live = new Set(); // entries that are counted
const dropped = new FinalizationRegistry((entry) => release(entry, "dropped"));

// Sums over what is live, and counts since the start.
const sums = {
  bytes: 0, bufferBytes: 0, buffers: 0, textureBytes: 0, textures: 0, querySets: 0, queries: 0,
  created: 0, destroyed: 0, dropped: 0, lost: 0, refused: 0, uncertain: 0,
};
let peak = 0; // highest bytes since the start,
let peakSinceMark = 0; // since the last mark,
let peakSinceRead = 0; // and since somebody looked last
let stage = ""; // what the page is about: the stage of a load
let past; // while a load goes on: times and the bytes that were live then, in turn

// stateOf remembers what is asked of a device over and over.
function stateOf(device) {
  let state = states.get(device);
  if (!state) {
    state = {
      maxBufferSize: device.limits.maxBufferSize,
      freeUsage: device.features.has("buffer-map-extended-usages"),
      gone: false,
      scopes: [], // the page's open error scopes
      foreseen: 0, // errors to come, outside of all scopes, of what was refused at once
    };
    states.set(device, state);
    device.lost.then(() => releaseAll(state));
    device.addEventListener("uncapturederror", (event) => own.has(event.error) || blame(state, undefined, event.error));
  }
  return state;
}

const allUsages = Object.entries(globalThis.GPUBufferUsage ?? {});
const anyUsage = allUsages.reduce((all, [, bit]) => all | bit, 0);

// grantable tells whether WebGPU's rules allow a buffer: one that breaks them is handed out all the same, with the size that was
// asked for and no memory behind it.
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

// Error scopes. WebGPU tells by them alone, and later, that memory ran out or that a rule was broken which is not known here. Those
// that the page opens are watched, not used; where it opens none, the ledger opens its own for what is large or rare.

const filters = ["out-of-memory", "validation"];
const own = new WeakSet(); // errors that were seen in a scope of the ledger's own

// innermost gives the open scopes that would get an error now, one a filter.
function innermost({ scopes }) {
  if (scopes.length === 0) return scopes;
  return ["out-of-memory", "validation", "internal"].map((f) => scopes.findLast(({ filter }) => filter === f)).filter(Boolean);
}

// foresee notes that an error will come of something that was refused at once.
function foresee(state) {
  sums.refused++;
  const scope = state.scopes.findLast(({ filter }) => filter === "validation");
  if (scope) scope.foreseen = true;
  else state.foreseen++;
}

// blame finds what an error is about: the only thing made in the scope that caught it, if one was.
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

// make creates an object, within scopes of the ledger's own where the page has none. What they catch is told as it would be without.
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

// Small buffers are made all the time and never fail alone.
const large = 1 << 20;

function bufferEntry(state, descriptor, buffer) {
  const { size, usage } = buffer;
  if (!grantable(state, size, usage)) {
    foresee(state);
    return undefined;
  }
  return { kind: "buffer", bytes: size, usage, label: descriptor.label ?? "" };
}

// Bytes of a texel block and its width and height; combined formats are the sum of their parts, depth24plus is taken for 4 bytes.
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

// textureBytes sums the mip levels of all layers and samples.
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
  if (bytes === undefined) sums.uncertain++; // a format of the future
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
    const result = pushErrorScope.call(this, filter); // throws for a filter that does not exist
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
  for (const p of [proto.buffer, proto.texture, proto.querySet]) {
    const { destroy } = p;
    p.destroy = function destroy_() {
      release(entries.get(this), "destroyed");
      return destroy.call(this);
    };
  }
}

// names spells the flags of a buffer's usage.
function names(usage) {
  return allUsages.filter(([, bit]) => usage & bit).map(([name]) => name.toLowerCase()).join("+");
}

// tally sums up what is live by a key.
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

const mostLabels = 32; // the page may call every buffer something else

// read gives everything: figures by the names that records have for them, by usage (buffers) and by label too, and what is live in
// groups of one load stage, kind, usage and size.
function read() {
  peakSinceRead = sums.bytes;
  const figures = {
    live_bytes: sums.bytes, live_count: live.size, page_peak_bytes: peak, phase_peak_bytes: peakSinceMark,
    buffer_bytes: sums.bufferBytes, buffer_count: sums.buffers, texture_bytes: sums.textureBytes, texture_count: sums.textures,
    query_set_count: sums.querySets, query_count: sums.queries, created_count: sums.created,
    released_count: sums.destroyed + sums.dropped + sums.lost, destroyed_count: sums.destroyed, dropped_count: sums.dropped,
    lost_count: sums.lost, refused_count: sums.refused, uncertain_count: sums.uncertain,
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

// brief gives what may change from one token to the next, as numbers in a fixed order: time, live bytes, live objects, highest bytes
// since the last look, created, destroyed in any way.
function brief() {
  const at = performance.timeOrigin + performance.now();
  const highest = peakSinceRead;
  peakSinceRead = sums.bytes;
  return [at, sums.bytes, live.size, highest, sums.created, sums.destroyed + sums.dropped + sums.lost];
}

// mark makes the phase's peak begin anew.
function mark() {
  peakSinceMark = sums.bytes;
}

// enter names what is made from now on.
function enter(name) {
  stage = name;
  if (name === "fetch") past = [];
  if (past) remember();
}

const mostPast = 2048; // numbers

const remember = () => past.push(performance.timeOrigin + performance.now(), sums.bytes);

// history gives what was live over the load that has ended, to a mebibyte, and forgets it.
function history() {
  const told = past ?? [];
  past = undefined;
  return told;
}

// WebAssembly's memories are nobody else's to see by themselves: heap figures leave them out. They are found where they are made or
// exported, and asked for their size when somebody wants to know it; one that is collected is forgotten.
const memories = new Set(); // of WeakRef
const known = new WeakSet();

function keep(memory) {
  if (!(memory instanceof WebAssembly.Memory) || known.has(memory)) return;
  known.add(memory);
  memories.add(new WeakRef(memory));
}

const keepExports = ({ exports }) => Object.values(exports).forEach(keep);

// watchConstructor sees every object that new makes.
const watchConstructor = (name, see) => {
  WebAssembly[name] = new Proxy(WebAssembly[name], {
    construct(target, args, newTarget) {
      const object = Reflect.construct(target, args, newTarget);
      see(object);
      return object;
    },
  });
};

// watchPromise sees what an instantiation comes to: an instance, or one beside its module.
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

// wasm gives the bytes and the number of the memories that are still there.
function wasm() {
  let bytes = 0, count = 0;
  for (const ref of memories) {
    const memory = ref.deref();
    if (!memory) {
      memories.delete(ref);
      continue;
    }
    bytes += memory.buffer.byteLength;
    count++;
  }
  return { bytes, count };
}

export const ledger = { read, brief, mark, enter, history, wasm };
globalThis.llmparityLedger = ledger;
