// What engines report of a forced token, computed from the logits of all tokens.

// scoreOf returns the log-probability of a token, then ids and log-probabilities of the most probable ones in turn.
export function scoreOf(logits, id, top) {
  if (id >= logits.length) throw new Error(`token ${id} is outside the vocabulary of ${logits.length}`);
  const all = normaliser(logits);
  if (logits[id] === -Infinity) throw new Error(`the model gives token ${id} a probability of 0`);
  return [logits[id] - all, ...likeliest(logits, top).flatMap((id) => [id, logits[id] - all])];
}

// normaliser returns the logarithm of the sum of all exponentials, in float64.
function normaliser(logits) {
  let most = -Infinity, sum = 0;
  for (const v of logits) if (v > most) most = v;
  for (const v of logits) sum += Math.exp(v - most);
  const value = most + Math.log(sum);
  if (!Number.isFinite(value)) throw new Error("the logits are not numbers");
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
