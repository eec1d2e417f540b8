// Draws one figure over commits. What is shown is in the link: v the figure, r whether as ratios, a and b the chosen runs, f a change.
// Data come as scripts that call llmparity.*, because a page in a folder may not read files. All names are put in as text.
"use strict";
const n = NaN; // as data have it
const llmparity = (() => {
  let runs = [], machines = [], view = null, lines = [], chart = null, at = [];
  const asked = new Map(); // scripts that were loaded
  const byId = (id) => document.getElementById(id);
  const state = () => new URLSearchParams(location.hash.slice(1));
  const safe = (key) => /^[0-9a-f]{10}$/.test(key || "");

  function make(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes || {})) e.setAttribute(k, v);
    e.append(...children);
    return e;
  }
  const bdi = (text) => make("bdi", {}, text);

  function load(src) {
    if (!asked.has(src)) {
      asked.set(src, new Promise((done, failed) => {
        const s = make("script", { src });
        s.addEventListener("load", done);
        s.addEventListener("error", () => failed(new Error(src + " is missing: write the pages again")));
        document.head.append(s);
      }));
    }
    return asked.get(src);
  }

  // go changes the link, which draws.
  function go(changes) {
    const s = state();
    for (const [k, v] of Object.entries(changes)) v === null ? s.delete(k) : s.set(k, v);
    history.replaceState(null, "", "#" + s);
    show();
  }

  // --- Values.
  const number = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });
  const value = (v) => (Number.isNaN(v) ? "unknown" : number.format(v) + (ratio() ? "" : " " + view.unit));
  const ratio = () => state().has("r") && lines.some((l) => l.control);
  const day = (t) => new Date(t * 1000).toISOString().slice(0, 16).replace("T", " ");
  const run = (i) => { const [sha, time, author, subject, machine, link, id] = runs[i]; return { sha, time, author, subject, machine: machines[machine], link, id }; };

  // unpacked are the points of a machine: six numbers each.
  function unpacked(flat) {
    const out = [];
    for (let i = 0; i < flat.length; i += 6) out.push({ run: flat[i], n: flat[i + 1], v: flat[i + 2], low: flat[i + 3], high: flat[i + 4], ratio: flat[i + 5] });
    return out;
  }

  // --- The chart.
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (verdict) => style(verdict === "regression" ? "--bad" : verdict === "suspected" ? "--notice-edge" : verdict === "improvement" ? "--good" : "--edge");

  function tip(params) {
    const { data } = params;
    if (!data || data.length < 4) return "";
    const p = data[3], r = run(p.run);
    const box = make("div", { class: "tip" }, make("strong", {}, value(data[1])));
    if (!ratio()) box.append(`, ${value(p.low)} to ${value(p.high)}`);
    box.append(`, ${p.n} launches`, make("br"), bdi(`${r.sha.slice(0, 10)} ${day(r.time)} ${r.author}`), make("br"), bdi(r.subject), make("br"), bdi(r.machine));
    return box;
  }

  function series(l, i, place) {
    const c = style("--c" + (i % 6));
    const asRatio = ratio();
    const points = l.points.map((p) => [place.get(p.run), asRatio ? p.ratio : p.v, p.run, p]).filter((p) => !Number.isNaN(p[1]));
    const out = [];
    if (!asRatio) {
      const band = (of) => ({ type: "line", stack: "band" + i, stackStrategy: "all", symbol: "none", silent: true, lineStyle: { opacity: 0 }, data: points.map((p) => [p[0], of(p[3])]), tooltip: { show: false }, sampling: "lttb" });
      out.push(band((p) => p.low), { ...band((p) => p.high - p.low), areaStyle: { color: c, opacity: 0.14 } });
    }
    out.push({
      type: "line", name: l.machine, data: points, color: c, symbolSize: points.length > 400 ? 4 : 6, showSymbol: true, symbol: "circle", lineStyle: { width: 1, opacity: 0.5 },
      markLine: {
        symbol: "none", silent: true, animation: false, data: [
          ...l.marks.map((m) => ({ xAxis: place.get(l.points[m.at].run) - 0.5, lineStyle: { type: "dotted", color: style("--edge") }, label: { show: false } })),
          ...l.changes.map((m) => ({ xAxis: place.get(l.points[m.at].run) - 0.5, lineStyle: { type: "solid", width: 1.5, color: colour(m.verdict) }, label: { formatter: m.size, color: colour(m.verdict), fontSize: 11 } })),
        ],
      },
    });
    return out;
  }

  function draw() {
    const all = [...new Set(lines.flatMap((l) => l.points.map((p) => p.run)))].sort((a, b) => a - b);
    at = all;
    const place = new Map(all.map((r, i) => [r, i]));
    const ink = style("--ink"), muted = style("--muted"), narrow = innerWidth < 600;
    const s = state(), [a, b] = [s.get("a"), s.get("b")].map((id) => all.findIndex((r) => id !== null && runs[r][6] === id));
    chart = chart || echarts.init(byId("plot"), null, { renderer: "canvas" });
    const zoomed = chart.getOption()?.dataZoom?.[0];
    const lists = lines.flatMap((l, i) => series(l, i, place));
    if (lists.length && a >= 0 && b >= 0) lists[0].markArea = { silent: true, itemStyle: { color: style("--band") }, data: [[{ xAxis: Math.min(a, b) }, { xAxis: Math.max(a, b) }]] };
    chart.setOption({
      animation: false, textStyle: { color: ink }, aria: { enabled: true },
      grid: { left: narrow ? 48 : 64, right: 16, top: lines.length > 1 ? 40 : 24, bottom: 70 },
      legend: lines.length > 1 ? { top: 0, data: lines.map((l) => l.machine), textStyle: { color: ink }, type: "scroll" } : undefined,
      xAxis: { type: "value", min: -0.5, max: all.length - 0.5, splitLine: { show: false }, axisLabel: { color: muted, hideOverlap: true, formatter: (v) => (Number.isInteger(v) && runs[all[v]] ? runs[all[v]][0].slice(0, 7) : "") }, minInterval: 1 },
      yAxis: { type: "value", scale: true, name: ratio() ? "ratio" : view.unit, nameTextStyle: { color: muted }, axisLabel: { color: muted }, splitLine: { lineStyle: { color: style("--line") } } },
      tooltip: { trigger: "item", confine: true, formatter: tip, backgroundColor: style("--card"), borderColor: style("--edge"), textStyle: { color: ink } },
      dataZoom: [{ type: "slider", height: 22, bottom: 8, filterMode: "none", ...(zoomed ? { start: zoomed.start, end: zoomed.end } : {}) }],
      series: lists,
    }, { notMerge: true });
  }

  // --- Choosing two runs.
  const index = (x) => Math.max(0, Math.min(at.length - 1, Math.round(chart.convertFromPixel({ xAxisIndex: 0 }, x))));

  function listen() {
    let from = null;
    const zr = chart.getZr(), inside = (e) => chart.containPixel("grid", [e.offsetX, e.offsetY]);
    zr.on("mousedown", (e) => { from = inside(e) ? e.offsetX : null; });
    zr.on("mouseup", (e) => {
      if (from === null) return;
      const begin = from;
      from = null;
      if (Math.abs(e.offsetX - begin) > 8) return pick(index(Math.min(begin, e.offsetX)), index(Math.max(begin, e.offsetX)));
      const one = index(e.offsetX), s = state();
      const first = at.findIndex((r) => runs[r][6] === s.get("a"));
      if (first < 0 || s.has("b")) go({ a: runs[at[one]][6], b: null });
      else pick(Math.min(first, one), Math.max(first, one));
    });
    addEventListener("resize", () => { chart.resize(); draw(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }
  const pick = (a, b) => go({ a: runs[at[a]][6], b: runs[at[b]][6] });

  // quoted is a word for a shell.
  const quoted = (word) => (/^[\w./:+][\w./:+-]*$/.test(word) ? word : "'" + word.replaceAll("'", "'\\''") + "'");

  function commit(r) {
    const out = make("span", {}, bdi(`${r.sha.slice(0, 10)} ${day(r.time)} ${r.author} ${r.subject}`));
    if (/^(https?:|\.\/)/.test(r.link)) out.append(" ", make("a", { href: r.link }, "report"));
    return out;
  }

  // compare says how two runs differ, and prints the command that finds the commit between them.
  function compare() {
    const box = byId("chosen"), s = state();
    const [a, b] = ["a", "b"].map((k) => at.find((r) => runs[r][6] === s.get(k)));
    box.hidden = a === undefined;
    if (box.hidden) return;
    box.replaceChildren(make("h2", {}, b === undefined ? "One run; click another to compare" : "Two runs"), make("p", {}, commit(run(a))));
    for (const l of lines) {
      const [p, q] = [a, b].map((r) => l.points.find((x) => x.run === r));
      const of = (x) => (ratio() ? x.ratio : x.v);
      if (p && q) {
        const change = 100 * (of(q) / of(p) - 1);
        box.append(make("p", {}, make("strong", {}, `${change > 0 ? "+" : change < 0 ? "−" : ""}${Math.abs(change).toFixed(1)}%`), ` ${value(of(p))} → ${value(of(q))}, `, bdi(l.machine)));
        const marks = l.marks.filter((m) => m.at > l.points.indexOf(p) && m.at <= l.points.indexOf(q)).flatMap((m) => m.what);
        if (marks.length) box.append(make("p", { class: "quiet" }, "Environment: ", bdi(marks.join("; "))));
      } else if (p || q) {
        box.append(make("p", { class: "quiet" }, value(of(p || q)) + ", ", bdi(l.machine)));
      }
    }
    if (b === undefined) return;
    const [x, y] = [run(a), run(b)];
    const [command, missing] = bisect(x, y, a, b);
    box.append(make("p", {}, commit(y)), make("p", { class: "code", id: "bisect" }, command), make("p", { class: "quiet" }, missing),
      make("p", { class: "quiet" }, `Between them: git log ${x.sha.slice(0, 10)}..${y.sha.slice(0, 10)}`));
  }

  // bisect is the command that finds what changed the figure between two runs, and what is to be filled in. It searches
  // versions of WebLLM where another one ran, commits otherwise: how these are built no history knows.
  function bisect(x, y, a, b) {
    const webllm = /^engine WebLLM (\d+\.\d+\.\d+)\b.*→ WebLLM (\d+\.\d+\.\d+)\b/;
    const seen = lines.flatMap((l) => l.marks.filter((m) => l.points[m.at].run > a && l.points[m.at].run <= b)).flatMap((m) => m.what)
      .map((text) => webllm.exec(text)).filter(Boolean);
    const plan = "It measures the tiny model. To measure this cell, add -- and a plan with it alone.";
    if (seen.length && seen[0][1] !== seen.at(-1)[2]) {
      return [`llmparity bisect --good ${seen[0][1]} --bad ${seen.at(-1)[2]} --axis webllm --figure ${quoted(view.name)}`, plan];
    }
    return [`llmparity bisect --good ${quoted(x.sha)} --bad ${quoted(y.sha)} --axis git --figure ${quoted(view.name)} --build 'COMMAND {}' --at 'FILE-{}.js'`,
      `Fill in COMMAND, which builds WebLLM at commit {}, and FILE, which it writes. ${plan}`];
  }

  // lists has the changes below the chart.
  function list() {
    const s = state();
    const entries = lines.flatMap((l) => l.changes.map((c) => {
      const to = make("a", { href: "#" + new URLSearchParams({ v: view.key, f: c.id }) }, make("strong", {}, c.size));
      const e = make("li", { id: "f-" + c.id, class: c.verdict }, to, " ", make("span", { class: "verdict" }, c.verdict), make("small", {}, bdi(c.words)), make("small", {}, bdi(l.machine)));
      if (s.get("f") === c.id) e.setAttribute("aria-current", "true");
      return e;
    }));
    byId("changes").replaceChildren(...(entries.length ? entries : [make("li", {}, "None.")]));
    const marks = lines.flatMap((l) => l.marks.slice(-100).reverse().map((m) => make("li", {}, commit(run(l.points[m.at].run)), make("small", {}, bdi(m.what.join("; "))))));
    byId("marks").replaceChildren(...(marks.length ? marks : [make("li", {}, "None.")]));
    document.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
  }

  async function show() {
    const key = state().get("v");
    if (!safe(key)) return;
    if (!view || view.key !== key) await load(`data/${key}.js`);
    const [h, flat] = llmparity.loaded.get(key);
    if (view !== h) {
      view = h;
      lines = h.machines.map((m, i) => ({ ...m, points: unpacked(flat[i]) }));
      chart?.clear();
    }
    document.title = `${h.title}, ${h.cell} – llmparity`;
    byId("title").textContent = `${h.title}, ${h.cell}`;
    byId("sub").textContent = h.better ? `${h.better} is better` : "";
    byId("view").value = key;
    byId("ratio-label").hidden = !lines.some((l) => l.control);
    byId("ratio").checked = ratio();
    const first = !chart;
    draw();
    if (first) listen();
    compare();
    list();
    document.documentElement.dataset.drawn = key; // for tests
  }

  function start() {
    const choose = byId("view");
    choose.addEventListener("change", () => go({ v: choose.value, a: null, b: null, f: null }));
    byId("ratio").addEventListener("change", (e) => go({ r: e.target.checked ? "1" : null }));
    addEventListener("hashchange", show);
    Promise.all([load("runs.js"), load("views.js")]).then(() => {
      if (safe(state().get("v"))) return show();
      go({ v: choose.value });
    }).catch((e) => { byId("said").classList.remove("unseen"); byId("said").textContent = e.message; });
  }
  addEventListener("DOMContentLoaded", start);

  return {
    loaded: new Map(),
    runs: (list, names) => { runs = list; machines = names; },
    views: (list) => byId("view").append(...list.map((v) => make("option", { value: v.k }, `${v.c}: ${v.t}`))),
    view: (h, flat) => llmparity.loaded.set(h.key, [h, flat]),
  };
})();
