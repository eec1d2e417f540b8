// Runs the sampling functions of a model library in WebLLM's page, without weights: the test evaluates this in the page once, then
// calls sampling.load and sampling.run.
(async () => {
  const { MLCEngine } = await import(new URL("engine/web-llm.js", document.baseURI));
  // The engine is the page's own secret; it shows itself where the page calls it.
  const interrupt = MLCEngine.prototype.interruptGenerate;
  let engine;
  MLCEngine.prototype.interruptGenerate = function () { engine = this; };
  llmparity.interrupt();
  MLCEngine.prototype.interruptGenerate = interrupt;
  const [pipeline] = engine.loadedModelIdToPipeline.values();
  const Instance = pipeline.tvm.constructor;
  const gpu = pipeline.tvm.lib.webGPUContext.device;

  // instance runs the library beside the one that WebLLM has loaded, on the same device.
  async function instance(url) {
    const module = await WebAssembly.compile(await (await fetch(url)).arrayBuffer());
    const imports = { env: {} };
    for (const { module: from, name } of WebAssembly.Module.imports(module)) {
      if (from !== "env") (imports[from] ??= {})[name] = () => 0; // of the system, nothing is needed
    }
    return new Instance(module, { imports, start: ({ exports }) => exports._initialize() });
  }

  const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;

  function text(array) {
    const b = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    let s = "";
    for (let i = 0; i < b.length; i += 1 << 15) s += String.fromCharCode(...b.subarray(i, i + (1 << 15)));
    return btoa(s);
  }

  const names = ["softmax_with_temperature", "argsort_probs", "sample_with_top_p"];
  let tvm, device, functions;
  const floats = (values, shape = [values.length]) => tvm.empty(shape, "float32", device).copyFrom(new Float32Array(values));
  const ints = (values, shape = [values.length]) => tvm.empty(shape, "int32", device).copyFrom(new Int32Array(values));
  const home = (tensor) => tvm.empty(tensor.shape, tensor.dtype, tvm.cpu()).copyFrom(tensor);

  globalThis.sampling = {
    async load(url) {
      tvm = await instance(url);
      tvm.initWebGPU(gpu);
      tvm.beginScope();
      device = tvm.webgpu();
      const machine = tvm.detachFromCurrentScope(tvm.createVirtualMachine(device));
      functions = Object.fromEntries(names.map((name) => [name, tvm.detachFromCurrentScope(machine.getFunction(name))]));
      tvm.endScope();
      return true;
    },

    async run({ logits, temperature, topPs, uniforms }) {
      const { softmax_with_temperature: softmax, argsort_probs: argsort, sample_with_top_p: sample } = functions;
      tvm.beginScope();
      const row = new Float32Array(bytes(logits));
      const probs = softmax(floats(row, [1, 1, row.length]), floats([temperature])).view([1, row.length]);
      const both = argsort(probs);
      const [sorted, order] = [both.get(0), both.get(1)];
      const first = ints([0]);
      const drawn = topPs.map((p) => uniforms.map((u) => home(sample(sorted, order, floats([u]), first, floats([p])))));
      const all = [probs, sorted, order].map(home);
      await device.sync();
      const [Probs, Sorted, Order] = all.map((tensor) => text(tensor.toArray()));
      const Tokens = drawn.map((tensors) => tensors.map((tensor) => tensor.toArray()[0]));
      tvm.endScope();
      return { Probs, Sorted, Order, Tokens };
    },
  };
  return true;
})()
