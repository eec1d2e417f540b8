// Scoring of a given text: at each place the most probable tokens and the given one, which is forced. It copies all
// logits from the GPU for every token, so such a generation is not measured.

import { host } from "../host.js";
import { scoreOf } from "../scores.js";

// Scoring is a WebLLM LogitProcessor. It reads the logits before anything else changes them, and replaces them so that
// only the given token can be sampled.
export class Scoring {
  constructor(forced, top) {
    Object.assign(this, { forced, top, at: 0, made: 0 });
  }

  processLogits(logits) {
    const id = this.take(logits);
    // The distance suffices for every temperature, and does not overflow with the smallest, 1e-6, by which WebLLM
    // divides.
    logits.fill(-100);
    logits[id] = 100;
    return logits;
  }

  // take scores the next token by its logits, and returns its id.
  take(logits) {
    const id = this.forced[this.at++];
    host.score(scoreOf(logits, id, this.top));
    return id;
  }

  processSampledToken() {}

  resetState() {}

  // sampled checks each token that WebLLM sampled.
  sampled(id) {
    const forced = this.forced[this.made++];
    if (id !== forced) throw new Error(`WebLLM sampled token ${id} instead of the forced ${forced}`);
  }
}

// verifier returns the library's function for the logits of many tokens, which ours and MLC's have; undefined: this one
// has none.
export function verifier({ tvm, vm }) {
  tvm.beginScope();
  try {
    return tvm.detachFromCurrentScope(vm.getFunction("batch_verify"));
  } catch {
    return undefined;
  } finally {
    tvm.endScope();
  }
}

// scoreWhole computes a text as WebLLM computes a prompt, many tokens at a time, instead of one by one.
export async function scoreWhole(pipeline, verify, prompt, scoring, interrupted) {
  const { tvm } = pipeline, { forced } = scoring;
  pipeline.resetChat();
  const ids = [...prompt, ...forced.slice(0, -1)], scored = prompt.length - 1;
  // One call of our libraries returns at most 2**23 logits, as library.py says.
  const most = Math.min(pipeline.prefillChunkSize, Math.floor(2 ** 23 / pipeline.fullVocabSize));
  for (let at = 0, n; at < ids.length && !interrupted(); at += n) {
    const end = at < scored ? Math.min(scored, at + pipeline.prefillChunkSize) : at + most;
    const chunk = ids.slice(at, end);
    n = chunk.length;
    tvm.beginScope();
    if (at < scored) {
      await pipeline.embedAndForward([chunk], n);
      await pipeline.device.sync();
    } else {
      const embedded = pipeline.getTokensEmbeddings(chunk);
      pipeline.fKVCacheBeginForward(pipeline.kvCache, tvm.makeShapeTuple([0]), tvm.makeShapeTuple([n]));
      const logits = verify(embedded.view([1, ...embedded.shape]), pipeline.kvCache, pipeline.params).get(0);
      pipeline.fKVCacheEndForward(pipeline.kvCache);
      pipeline.filledKVCacheLength += n;
      const read = tvm.empty(logits.shape, logits.dtype, tvm.cpu()).copyFrom(logits);
      await pipeline.device.sync();
      const all = read.toArray(), width = all.length / n;
      for (let i = 0; i < n; i++) scoring.take(all.subarray(i * width, (i + 1) * width));
    }
    tvm.endScope();
  }
  verify.dispose();
  pipeline.resetChat();
}
