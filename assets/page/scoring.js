// What WebLLM thinks of a text that it is given: at each place its likeliest tokens, and the one that is forced on it. It copies all
// logits from the GPU for every token, so that nothing of a generation that does this is measured.

// Scoring is a LogitProcessor in WebLLM's sense. It reads the logits before anything that samples touches them, and gives others in
// their place, which leave no choice.
export class Scoring {
  constructor(forced, top, tell) {
    Object.assign(this, { forced, top, tell, at: 0, made: 0 });
  }

  processLogits(logits) {
    const id = this.forced[this.at++];
    if (id >= logits.length) throw new Error(`token ${id} is outside the vocabulary of ${logits.length}`);
    const all = normaliser(logits);
    if (logits[id] === -Infinity) throw new Error(`the model gives token ${id} no probability at all`);
    this.tell([logits[id] - all, ...likeliest(logits, this.top).flatMap((id) => [id, logits[id] - all])]);
    // Far enough apart for every temperature, and near enough for the smallest, by which WebLLM divides: 1e-6.
    logits.fill(-100);
    logits[id] = 100;
    return logits;
  }

  processSampledToken() {}

  resetState() {}

  // sampled is told of each token that WebLLM chose.
  sampled(id) {
    const forced = this.forced[this.made++];
    if (id !== forced) throw new Error(`WebLLM chose token ${id} where ${forced} was forced`);
  }
}

// normaliser is the logarithm of the sum of all exponentials, taken in float64.
function normaliser(logits) {
  let most = -Infinity, sum = 0;
  for (const v of logits) if (v > most) most = v;
  for (const v of logits) sum += Math.exp(v - most);
  const value = most + Math.log(sum);
  if (!Number.isFinite(value)) throw new Error("what WebLLM computes are no numbers");
  return value;
}

// likeliest gives ids, the likeliest first; of equals the lower one.
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
