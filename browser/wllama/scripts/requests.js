// Requests to llama.cpp's server in wllama: a generation in one completion or several, and the scores of a given text.

import { host } from "../host.js";

// textOf returns a text that the model's tokenizer turns into given ids, or into as many of the first as possible, and their number.
// idsOf returns the ids of a text. Our server computes both, because wllama tells no ids of a prompt.
const ask = async (what, of) => {
  const answer = await fetch(new URL(`../model/${what}?of=${encodeURIComponent(of)}`, import.meta.url));
  if (!answer.ok) throw new Error(`${what} of a prompt: ${await answer.text()}`);
  return answer.json();
};
const textOf = (ids) => ask("text", ids.join(" "));
const idsOf = (text) => ask("ids", text);

// whole returns the text of ids, all of which it gives.
async function whole(ids) {
  const { text, exact } = await textOf(ids);
  if (exact !== ids.length) throw new Error(`wllama takes prompts as text, and no text has these ${ids.length} token ids`);
  return text;
}

const always = { cache_prompt: false, return_tokens: true, verbose: true, timings_per_token: true };

// A single sampler: the largest logit at temperature 0, otherwise the whole distribution at that temperature.
const sampler = (temperature, seed) => temperature > 0 ? { temperature, seed, samplers: ["temperature"] }
  : { temperature: 0, top_k: 1, samplers: ["top_k", "temperature"] };

const forcing = 1e5; // a logit bias that no logit comes near

// server returns what sends requests. complete sends one to wllama, ends tells tokens that end a text.
export function server({ complete, ends, why }) {
  const s = { held: 0, generate, score };

  // send sends a request; see gets each event. It returns undefined if it was interrupted.
  async function send(body, see) {
    const { signal } = s;
    let last;
    const onData = ({ __verbose, choices }) => {
      last = __verbose;
      see(last, choices);
    };
    try {
      const answer = await complete({ ...always, ...body, abortSignal: signal, ...(see && { stream: true, onData }) });
      return last ?? answer.__verbose;
    } catch (e) {
      if (signal.aborted) return undefined;
      throw why(e);
    }
  }

  // generate continues a prompt, whose ids may be given. A completion ends with the text. To continue behind that, as other engines
  // do, the text so far becomes the prompt of another one.
  async function generate({ prompt, ids: given, maxTokens, temperature, seed, ignoreEOS }, context) {
    const promptIDs = given ?? await idsOf(prompt);
    if (!promptIDs.length) throw new Error("the prompt has no tokens");
    if (promptIDs.length + maxTokens > context) return { tooLong: promptIDs.length, context };
    let text = given ? await whole(given) : prompt;
    const run = { ids: [], text: "", held: promptIDs.length, lost: 0, resumed: 0, reported: {} };
    const sent = host.now();
    let end;
    for (;;) {
      end = await completion(run, { prompt: text, max_tokens: maxTokens - run.ids.length, ...sampler(temperature, seed) }, promptIDs);
      if (!end || !ignoreEOS || end === "length") break;
      run.resumed++;
      text = await whole([...promptIDs, ...run.ids]);
    }
    return { sent, promptIDs, text: run.text, finish: end ?? "abort", reported: run.reported, warnings: warnings(run, promptIDs) };
  }

  // completion runs one completion, and returns why it ended. The server sends no event for a token that ends inside a character.
  // The next one has the count, but not its id: such tokens are kept back, and found by the same completion without events.
  async function completion(run, body, promptIDs) {
    const before = run.ids.length, kept = [];
    const take = (id, at) => {
      run.ids.push(id);
      if (kept.length || id < 0) kept.push([run.ids.length - 1, at]);
      else host.token(id, at);
      s.held = promptIDs.length + run.ids.length - 1;
    };
    const last = await send(body, (v, choices) => {
      const at = host.now();
      run.text += choices[0]?.text ?? "";
      for (let n = v.tokens_predicted - v.tokens.length - (run.ids.length - before); n > 0; n--) take(-1, at);
      for (const id of v.tokens) take(id, at);
    });
    if (!last) return undefined;
    if (run.ids.length === before) throw new Error("wllama generated no token");
    s.held = last.tokens_cached;
    count(run, last);
    if (kept.length) {
      const again = await send({ ...body, max_tokens: run.ids.length - before });
      if (!again) return undefined;
      for (const [at, when] of kept) {
        const id = again.tokens[at - before];
        if (id === undefined || run.ids[at] >= 0 && run.ids[at] !== id) throw new Error(`wllama repeated a completion, but token ${at} is ${id}, not ${run.ids[at]}`);
        if (run.ids[at] < 0 && !(at === run.ids.length - 1 && last.stop_type === "eos")) run.lost++;
        run.ids[at] = id;
        host.token(id, when);
      }
    }
    return run.ids.length - before === body.max_tokens ? "length" : "stop";
  }

  // count adds the server's figures; those of a single completion keep their rates.
  function count(run, { timings, tokens_predicted, tokens_evaluated }) {
    const now = { ...timings, tokens_predicted, tokens_evaluated }, sum = run.reported;
    if (!run.resumed) return Object.assign(sum, now);
    for (const name of Object.keys(sum)) {
      if (/_(n|ms|predicted)$/.test(name) && !/_per_/.test(name)) sum[name] += now[name];
      else if (name !== "tokens_evaluated") delete sum[name];
    }
  }

  function warnings({ ids, lost, resumed, reported }, promptIDs) {
    const all = [];
    const told = (code, text) => all.push({ code, text });
    const { prompt_n: evaluated, cache_n: cached } = reported;
    if (lost) told("held-back-tokens", `wllama sends no event for a token that ends inside a character: ${lost} of ${ids.length} tokens have the time of the next event, and their ids come from an untimed second request`);
    if (resumed) told("behind-end", `the text ended early ${resumed} time(s), and wllama needed another request with a prefill to continue: decode speed is not comparable`);
    else if (evaluated + cached !== promptIDs.length) told("counts-differ", `wllama counts ${evaluated} prompt tokens evaluated and ${cached} cached, but the prompt has ${promptIDs.length}`);
    return all;
  }

  // score forces a text by a grammar of token ids, at the end of which only a token that ends a text may come. The probabilities
  // that the server reports include neither grammar nor bias. Behind the end of a text, another request continues. What no text has as
  // a prompt is forced, too, with scores that nobody gets.
  async function score({ prompt, forced, top }) {
    for (let done = 0; done < forced.length && !s.signal.aborted;) {
      const before = [...prompt, ...forced.slice(0, done)];
      const { text, exact } = await textOf(before);
      const rest = [...before.slice(exact), ...forced.slice(done)];
      const end = rest.findIndex(ends);
      const part = end < 0 ? rest : rest.slice(0, end + 1), known = before.length - exact;
      if (!exact || part.length <= known) throw new Error("wllama takes prompts as text, and no text has the token ids of this one");
      await force(text, part, known, top);
      done += part.length - known;
    }
    return { promptIDs: prompt };
  }

  // force reports the scores of ids after the first known ones.
  async function force(prompt, ids, known, top) {
    const end = ends(ids.at(-1)), free = end ? ids.slice(0, -1) : ids;
    const body = {
      prompt, max_tokens: ids.length, n_probs: top, ...sampler(0), cache_prompt: true,
      ...(free.length && { grammar: `root ::= ${free.map((id) => `<[${id}]>`).join(" ")}` }),
      ...(end && { logit_bias: [[ids.at(-1), forcing]] }),
    };
    let at = 0, whole = true;
    const report = ({ id, logprob, top_logprobs }) => {
      if (id !== ids[at]) throw new Error(`wllama sampled token ${id} instead of the forced ${ids[at]}`);
      if (at++ < known) return;
      if (!(logprob > -1e30)) throw new Error(`the model gives token ${id} a probability of 0, or its logits are not numbers`);
      host.score([logprob, ...top_logprobs.filter((t) => t.logprob > -1e30).flatMap((t) => [t.id, t.logprob])]);
    };
    const last = await send(body, ({ tokens_predicted, completion_probabilities: all }) => {
      whole &&= tokens_predicted === at + (all?.length ?? 0);
      if (whole) all?.forEach(report);
    });
    if (!last || at === ids.length) return;
    const again = await send(body); // events lack tokens that end inside a character, or the text
    again?.completion_probabilities.slice(at).forEach(report);
  }

  return s;
}
