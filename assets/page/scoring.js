// Scoring of a given text: at each place the most probable tokens and the given one, which is forced. It copies all
// logits from the GPU for every token, so such a generation is not measured.

// Scoring is a WebLLM LogitProcessor. It reads the logits before anything else changes them, and replaces them so that
// only the given token can be sampled.
export class Scoring {
  constructor(forced, top, tell) {
    Object.assign(this, { forced, top, tell, at: 0, made: 0 });
  }

  processLogits(logits) {
    const id = this.forced[this.at++];
    if (id >= logits.length) throw new Error(`token ${id} is outside the vocabulary of ${logits.length}`);
    const all = normaliser(logits);
    if (logits[id] === -Infinity) throw new Error(`the model gives token ${id} a probability of 0`);
    this.tell([logits[id] - all, ...likeliest(logits, this.top).flatMap((id) => [id, logits[id] - all])]);
    // The distance suffices for every temperature, and does not overflow with the smallest, 1e-6, by which WebLLM
    // divides.
    logits.fill(-100);
    logits[id] = 100;
    return logits;
  }

  processSampledToken() {}

  resetState() {}

  // sampled checks each token that WebLLM sampled.
  sampled(id) {
    const forced = this.forced[this.made++];
    if (id !== forced) throw new Error(`WebLLM sampled token ${id} instead of the forced ${forced}`);
  }
}

// normaliser returns the logarithm of the sum of all exponentials, in float64.
function normaliser(logits) {
  let most = -Infinity, sum = 0;
  for (const v of logits) if (v > most) most = v;
  for (const v of logits) sum += Math.exp(v - most);
  const value = most + Math.log(sum);
  if (!Number.isFinite(value)) throw new Error("WebLLM's logits are not numbers");
  return value;
}

// likeliest returns the most probable ids, of equals the lower first.
function likeliest(logits, n) {
  const best = [];
  for (let id = 0; id < logits.length; id++) {
    if (best.length === n && logits[id] <= logits[best[n - 1]]) continue;
    let at = best.length;
    while (at > 0 && logits[id] > logits[best[at - 1]]) at--;
    best.splice(at, 0, id);
    best.length = Math.min(best.length, n);
  }
  return best;
}
