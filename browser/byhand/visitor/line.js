// The connection to llmparity. What it asks of an engine's page is asked of a frame, which is new for each launch, and answered.

const soon = 150; // ms: how long an engine may take to free its memory when a person stops it
const again = 1500; // ms until the page connects again
const loads = 20000; // ms for which a frame may load
const empties = 5000; // ms for which it may remove what the engine stored

// The frame has another name of this machine, if there is one: then it is another site, and browsers give it a process of its own.
const site = new URL(location.href);
site.hostname = { "127.0.0.1": "localhost", localhost: "127.0.0.1" }[site.hostname] ?? site.hostname;

const within = (ms, work) => Promise.race([work, new Promise((done) => setTimeout(done, ms))]);

export function connect(hear, seen, about) {
  let socket, frame, last = 0;
  const waiting = new Map(); // what the frame is asked, by number
  const line = { closed: true, send, stop };

  function send(message) {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  }

  addEventListener("message", ({ data, source, origin }) => {
    if (source !== frame?.contentWindow || origin !== site.origin) return;
    const { id, json, thrown, opened } = data;
    if (!id && !opened) {
      send(data);
      if (data.report) look.report(data.report);
      return;
    }
    const { resolve, reject } = waiting.get(opened ? 0 : id) ?? {};
    waiting.delete(opened ? 0 : id);
    if (thrown === undefined) resolve?.(json);
    else reject?.(thrown);
  });

  const answered = (id) => new Promise((resolve, reject) => { waiting.set(id, { resolve, reject }); });

  // ask asks the frame.
  function ask(message) {
    if (!frame) throw new Error("no engine's page is open");
    frame.contentWindow.postMessage({ ...message, id: ++last }, site.origin);
    return answered(last);
  }

  async function open(path) {
    if (await opens(path)) return;
    site.hostname = location.hostname; // the other name does not lead here
    if (!await opens(path)) throw new Error("the engine's page does not load");
  }

  async function opens(path) {
    shut();
    frame = document.createElement("iframe");
    Object.assign(frame, { title: "The engine that is measured", tabIndex: -1, allow: "cross-origin-isolated", src: new URL(path, site).href });
    const opened = answered(0).then(() => true);
    document.getElementById("frame").append(frame);
    return within(loads, opened);
  }

  function shut() {
    frame?.remove();
    frame = undefined;
    for (const { reject } of waiting.values()) reject("the frame of the engine was removed");
    waiting.clear();
  }

  // free destroys what the engine has on the GPU, and returns the ledger's bytes; undefined if the engine is busy.
  async function free() {
    if (!frame) return 0;
    const json = await within(soon, ask({ frees: true })).catch(() => undefined);
    return json && JSON.parse(json).ledger.figures.live_bytes;
  }

  async function answer({ open: path, call, thread }) {
    if (path) return open(path);
    if (call) return ask({ call, thread });
    await free();
    await emptied();
  }

  // emptied removes what the engine stored in the browser, and then the frame.
  async function emptied() {
    const of = frame;
    if (of) await within(empties, ask({ empties: true })).catch(() => {}); // as far as the browser lets it
    if (frame === of) shut(); // else the next launch has begun
  }

  async function handle(message) {
    const { id } = message;
    try {
      const json = await answer(message);
      if (message.call) look.answer(message.call, json);
      socket.send(`{"id":${id},"json":${json || "null"}}`);
    } catch (e) {
      send({ id, thrown: typeof e === "string" ? e : String(e) });
    }
  }

  // look shows what passes by, so that nothing is read only to be shown.
  const look = {
    report(text) {
      const { ledger, tokens } = JSON.parse(text);
      if (tokens?.length) seen.tokens(tokens.filter((_, i) => i % 2 === 1)); // the others are ids
      if (ledger) seen.ledger(ledger[1]);
    },
    answer(what, json) {
      const of = { "llmparity.reading()": (v) => seen.ledger(v.ledger.figures.live_bytes), "llmparityLedger.wasm()": (v) => seen.wasm(v.bytes),
        "llmparityPage.memory()": (v) => v && seen.heap(v.used) }[what];
      if (of && json) of(JSON.parse(json));
      if (what.startsWith("llmparityPage.health.longest(")) for (const block of JSON.parse(json)) if (block) seen.block(block[1] - block[0]);
    },
  };

  // stop frees the engine's memory at once, whatever llmparity does meanwhile. A frame that does not answer is removed.
  async function stop() {
    send({ stop: true });
    const bytes = await free();
    if (bytes === undefined) shut();
    else emptied(); // meanwhile the page may go on
    return bytes;
  }

  async function begin() {
    const { about: own } = await about;
    socket = new WebSocket(new URL("line", location.href.replace(/^http/, "ws")));
    socket.onopen = () => {
      line.closed = false;
      send({ about: { ...own, now: Date.now() } });
    };
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.id) return handle(message);
      for (const [kind, content] of Object.entries(message)) hear[kind]?.(content);
    };
    socket.onclose = () => {
      const was = line.closed;
      line.closed = true;
      shut();
      if (!was) hear.closed();
      setTimeout(begin, again);
    };
  }
  begin();
  return line;
}
