// The connection to llmparity. What it asks of an engine's page is called in a frame, which is new for each launch, and answered.

import { call } from "./own/call.js";

const soon = 150; // ms: how long an engine may take to free its memory when a person stops it
const again = 1500; // ms until the page connects again

export function connect(hear, seen, about) {
  let socket, frame, entered;
  const line = { closed: true, send, stop };

  function send(message) {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
  }

  // watched passes on what the frame's page reports and throws.
  function watched(inside) {
    inside.llmparityEvent = (report) => {
      send({ report });
      look.report(report);
    };
    inside.addEventListener("error", ({ message }) => send({ threw: message || "an error without a message" }));
    inside.addEventListener("unhandledrejection", ({ reason }) => send({ threw: String(reason) }));
    const { error } = inside.console;
    inside.console.error = (...words) => {
      send({ said: words.map(String).join(" ").slice(0, 2000) });
      error.apply(inside.console, words);
    };
  }

  const open = (path) => new Promise((resolve, reject) => {
    shut();
    frame = document.createElement("iframe");
    frame.title = "The engine that is measured";
    frame.tabIndex = -1;
    frame.allow = "cross-origin-isolated";
    frame.onload = () => {
      try {
        watched(frame.contentWindow);
        resolve(true);
      } catch { // it shows an error of the browser's
        reject(new Error("the engine's page does not load"));
      }
    };
    frame.src = new URL(path, location.href).href;
    document.getElementById("frame").append(frame);
  });

  function shut() {
    frame?.remove();
    frame = entered = undefined;
  }

  // answer calls something in a thread of the frame, and returns its JSON as a text.
  async function answer({ call: what, thread }) {
    if (!frame) throw new Error("no engine's page is open");
    const inside = frame.contentWindow;
    if (thread === "worker") return inside.llmparityRelay(what);
    return JSON.stringify(await call(what, inside));
  }

  async function handle(message) {
    const { id } = message;
    if (!id) {
      for (const [kind, content] of Object.entries(message)) hear[kind]?.(content);
      return;
    }
    try {
      let json;
      if (message.open) json = String(await open(message.open));
      else if (message.shut) json = String(await free() ?? null);
      else json = await answer(message);
      if (message.shut) shut();
      if (message.call) look.answer(message.call, json);
      socket.send(`{"id":${id},"json":${json || "null"}}`);
    } catch (e) {
      send({ id, thrown: typeof e === "string" ? e : String(e) });
    }
  }

  // look shows what passes by, so that nothing is read only to be shown.
  const look = {
    report(text) {
      const { ledger } = JSON.parse(text);
      if (ledger) seen.ledger(ledger[1]);
    },
    answer(what, json) {
      const of = { "llmparity.reading()": (v) => seen.ledger(v.ledger.figures.live_bytes), "llmparityLedger.wasm()": (v) => seen.wasm(v.bytes),
        "llmparityPage.memory()": (v) => v && seen.heap(v.used) }[what];
      if (of && json) of(JSON.parse(json));
      if (what.startsWith("llmparityPage.health.longest(")) for (const block of JSON.parse(json)) if (block) seen.block(block[1] - block[0]);
    },
  };

  // briefly waits for what may take long.
  const briefly = (work) => Promise.race([Promise.resolve(work).catch(() => {}), new Promise((done) => setTimeout(done, soon / 3))]);

  // free destroys what the engine has on the GPU, and returns the ledger's bytes; undefined if the engine is busy.
  async function free() {
    if (!frame?.contentWindow.llmparityPage) return frame ? undefined : 0;
    const inside = frame.contentWindow, there = inside.llmparity;
    const freed = async () => {
      if (there) {
        await briefly(there.giveUp());
        return (await there.reading()).ledger.figures.live_bytes;
      }
      await briefly(inside.llmparityRelay("llmparity.giveUp()"));
      return JSON.parse(await inside.llmparityRelay("llmparity.reading()")).ledger.figures.live_bytes;
    };
    return Promise.race([freed().catch(() => undefined), new Promise((done) => setTimeout(done, soon))]);
  }

  // stop frees the engine's memory and removes the frame at once, whatever llmparity does meanwhile.
  async function stop() {
    const bytes = await free();
    shut();
    send({ stop: true });
    return bytes;
  }

  async function begin() {
    const { about: own } = await about;
    socket = new WebSocket(new URL("line", location.href.replace(/^http/, "ws")));
    socket.onopen = () => {
      line.closed = false;
      send({ about: { ...own, now: Date.now() } });
    };
    let last = Promise.resolve(); // messages without a number are heard in order
    socket.onmessage = ({ data }) => {
      const message = JSON.parse(data);
      if (message.id) handle(message);
      else last = last.then(() => handle(message));
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
