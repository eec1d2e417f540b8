// A forward pass in plain JavaScript, as an engine of llmparity's page; host.js says what is called when.

import { host } from "../host.js";
import { scoreOf } from "../scores.js";

let model; // undefined: none is loaded
let stopped;

// ask gets something about the loaded model from our server.
const ask = async (path) => {
  const answer = await fetch(new URL(`../model/${path}`, import.meta.url));
  if (!answer.ok) throw new Error(`cannot fetch ${path}: ${answer.status}`);
  return answer;
};

// load fetches the weights and copies each to a buffer of the GPU.
export async function load(options) {
  host.mark("download");
  const bytes = await (await ask("weights")).arrayBuffer();
  host.mark("upload");
  const adapter = await navigator.gpu.requestAdapter();
  const device = await adapter.requestDevice(); // host destroys it after unload
  const weights = {};
  let at = 0;
  for (const { name, values } of options.tensors) {
    const tensor = weights[name] = new Float32Array(bytes, at, values);
    const buffer = device.createBuffer({ size: tensor.byteLength, usage: GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_DST });
    device.queue.writeBuffer(buffer, 0, tensor);
    at += tensor.byteLength;
  }
  await device.queue.onSubmittedWorkDone();
  model = { ...options, weights };
}

export async function unload() { model = undefined; }

export const interrupt = () => { stopped = true; };

// generate completes a prompt with the most probable tokens.
export async function generate({ prompt, maxTokens, ignoreEOS }) {
  if (!model) throw new Error("no model is loaded");
  stopped = false;
  const sent = host.now();
  const promptIDs = await (await ask(`ids?text=${encodeURIComponent(prompt)}`)).json();
  if (promptIDs.length === 0 || promptIDs.length + maxTokens > model.context) return { tooLong: promptIDs.length || 1, context: model.context };
  const sequence = new Sequence(model), ids = [];
  let logits = await prefill(sequence, promptIDs), finish = "length";
  while (!stopped) {
    const id = logits.indexOf(Math.max(...logits));
    ids.push(id);
    host.token(id);
    if (id === model.eos && !ignoreEOS) finish = "stop";
    if (finish === "stop" || ids.length === maxTokens) break;
    await host.turn();
    logits = sequence.step(id);
  }
  const text = await (await ask(`text?ids=${ids.join("+")}`)).json();
  return { sent, promptIDs, text, finish: stopped ? "abort" : finish, reported: { steps: sequence.length } };
}

// score forces a text, whose tokens are computed one by one in any case.
export async function score({ prompt, forced, top }) {
  if (!model) throw new Error("no model is loaded");
  stopped = false;
  const sequence = new Sequence(model);
  let logits = await prefill(sequence, prompt);
  for (const id of forced) {
    if (stopped) break;
    host.score(scoreOf(logits, id, top));
    await host.turn();
    logits = sequence.step(id);
  }
  return { promptIDs: prompt };
}

async function prefill(sequence, ids) {
  let logits;
  for (const id of ids) {
    if (stopped) break;
    logits = sequence.step(id);
    await host.turn();
  }
  return logits;
}

// Sequence is a text in progress, with its keys and values: for each layer one array a position.
class Sequence {
  constructor(model) {
    const cache = () => Array.from({ length: model.layers }, () => []);
    Object.assign(this, { model, length: 0, keys: cache(), values: cache() });
  }

  // step appends a token and returns the logits for the next one.
  step(id) {
    const { weights, layers, epsilon } = this.model;
    const embeddings = weights["token_embd.weight"], size = weights["output_norm.weight"].length;
    const x = embeddings.slice(id * size, (id + 1) * size);
    for (let i = 0; i < layers; i++) {
      const part = (name) => weights[`blk.${i}.${name}.weight`];
      add(x, multiply(part("attn_output"), this.attend(i, part, norm(x, part("attn_norm"), epsilon))));
      const input = norm(x, part("ffn_norm"), epsilon);
      const up = multiply(part("ffn_up"), input);
      const gated = multiply(part("ffn_gate"), input).map((g, j) => g / (1 + Math.exp(-g)) * up[j]);
      add(x, multiply(part("ffn_down"), gated));
    }
    this.length++;
    return multiply(weights["output.weight"] ?? embeddings, norm(x, weights["output_norm.weight"], epsilon));
  }

  attend(layer, part, input) {
    const { heads, kvHeads, headDim } = this.model;
    const queries = this.rotate(multiply(part("attn_q"), input));
    const keys = this.keys[layer], values = this.values[layer];
    keys.push(this.rotate(multiply(part("attn_k"), input)));
    values.push(multiply(part("attn_v"), input));
    const out = new Float32Array(queries.length);
    for (let head = 0; head < heads; head++) {
      const query = queries.subarray(head * headDim, (head + 1) * headDim);
      const at = Math.floor(head / (heads / kvHeads)) * headDim;
      const scores = keys.map((key) => dot(key, at, query) / Math.sqrt(headDim));
      const most = Math.max(...scores);
      const shares = scores.map((s) => Math.exp(s - most));
      const sum = shares.reduce((a, b) => a + b);
      for (let d = 0; d < headDim; d++) {
        out[head * headDim + d] = shares.reduce((a, share, p) => a + share / sum * values[p][at + d], 0);
      }
    }
    return out;
  }

  // rotate turns pairs of adjacent values by the position's angles.
  rotate(x) {
    const { headDim, ropeBase } = this.model;
    for (let i = 0; i < x.length; i += 2) {
      const angle = this.length * ropeBase ** (-(i % headDim) / headDim);
      const [a, b, sin, cos] = [x[i], x[i + 1], Math.sin(angle), Math.cos(angle)];
      [x[i], x[i + 1]] = [a * cos - b * sin, a * sin + b * cos];
    }
    return x;
  }
}

function dot(a, at, b) {
  let sum = 0;
  for (let i = 0; i < b.length; i++) sum += a[at + i] * b[i];
  return sum;
}

// multiply multiplies a matrix, stored by rows, with a vector.
const multiply = (matrix, x) => Float32Array.from({ length: matrix.length / x.length }, (_, row) => dot(matrix, row * x.length, x));

function norm(x, weight, epsilon) {
  const scale = 1 / Math.sqrt(dot(x, 0, x) / x.length + epsilon);
  return x.map((v, i) => v * scale * weight[i]);
}

const add = (to, x) => x.forEach((v, i) => { to[i] += v; });
