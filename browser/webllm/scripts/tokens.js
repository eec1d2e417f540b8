// Where WebLLM's tokens are seen: in private parts of the pipeline of a loaded model. Chunks of a stream are not tokens, because text
// can end in an unfinished character, and WebLLM's own count lacks the token that the prompt yields.

// promptSteps are the pipeline's functions that use the prompt's ids, newest first, and how to get the ids from their
// results.
const promptSteps = [
  ["forwardPrefill", ({ promptTokenIds }) => promptTokenIds], // 0.2.86
  ["getInputData", ([data]) => data.filter(Array.isArray).flat()], // to 0.2.85
];

const stepOf = (p) => promptSteps.find(([step]) => typeof p?.[step] === "function");

// pipelineOf returns the pipeline of a model, and fails with a clear error if WebLLM's private parts have changed.
export function pipelineOf(engine, id) {
  const p = engine.loadedModelIdToPipeline?.get?.(id);
  for (const [name, there] of Object.entries({
    "completions": engine.completions,
    "loadedModelIdToPipeline.get(id)": p,
    "pipeline.processNextToken": typeof p?.processNextToken === "function",
    "pipeline.forwardPrefill": stepOf(p),
    "pipeline.tokenizer.encode": typeof p?.tokenizer?.encode === "function",
  })) {
    if (!there) throw new Error(`this WebLLM build has no engine.${name}, which this page needs`);
  }
  return p;
}

// watchTokens calls sampled(id) for every token that a pipeline has sampled, and prompted(ids) for a prompt's final ids. It
// returns a function that ends this.
export function watchTokens(p, sampled, prompted) {
  const [step, ids] = stepOf(p);
  const { processNextToken: next, [step]: original } = p;
  const own = [["processNextToken", next], [step, original]].filter(([name]) => Object.hasOwn(p, name));
  p.processNextToken = function (id, ...rest) {
    sampled(id);
    return next.call(this, id, ...rest);
  };
  const keep = (result) => {
    prompted(ids(result));
    return result;
  };
  p[step] = function (...args) {
    const result = original.apply(this, args);
    return result instanceof Promise ? result.then(keep) : keep(result);
  };
  return () => {
    delete p.processNextToken;
    delete p[step];
    Object.assign(p, Object.fromEntries(own));
  };
}
