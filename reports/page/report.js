// Draws the report's charts, sorts, filters and copies its tables, and opens what a link leads to. Nothing is fetched. Without this
// script the page still has every figure, in its tables.
"use strict";
(() => {
  const root = document.documentElement;
  const { charts: drawings, labels } = JSON.parse(llmparityUnpack("drawings"));
  const number = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });
  const dark = matchMedia("(prefers-color-scheme: dark)");
  root.classList.add("js");

  // say tells those who don't see what changed.
  const say = (words) => { document.getElementById("said").textContent = words; };

  // make gives an element with attributes and children.
  function make(tag, attributes, ...children) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  }

  // copier is a button that copies what make gives, a blob; where the browser allows no copying it saves a file.
  function copier(text, words, content) {
    const button = make("button", { type: "button", "aria-label": words, title: words }, text);
    button.addEventListener("click", async () => {
      const blob = content();
      let done = "Copied";
      try {
        await navigator.clipboard.write([new ClipboardItem({ [blob.type]: blob })]);
      } catch {
        const to = make("a", { href: URL.createObjectURL(blob), download: `llmparity.${{ "Copy CSV": "csv", "Copy BibTeX": "bib" }[text] || text.toLowerCase()}` });
        to.click();
        URL.revokeObjectURL(to.href);
        done = "Saved";
      }
      button.textContent = done;
      button.classList.add("copied");
      say(`${words}: ${done.toLowerCase()}`);
      setTimeout(() => { button.textContent = text; button.classList.remove("copied"); }, 2000);
    });
    return button;
  }

  // --- Light and dark. The style sheet has one rule for dark; which screens it holds for is all that the switch changes.
  const night = [...document.styleSheets].flatMap((s) => [...s.cssRules]).find((r) => r.media && r.media.mediaText.includes("prefers-color-scheme"));
  const asked = night.media.mediaText;
  let chosen = ""; // what the reader chose; empty: what the system says
  const isDark = () => (chosen ? chosen === "dark" : dark.matches);
  const shade = make("button", { type: "button", class: "shade" });
  function relabel() { shade.textContent = isDark() ? "Light" : "Dark"; shade.setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours"); }
  function light(which) { night.media.mediaText = which === "" ? asked : which === "dark" ? "screen" : "not all"; }
  shade.addEventListener("click", () => {
    chosen = isDark() ? "light" : "dark";
    light(chosen);
    relabel();
    redraw();
    say(chosen + " colours");
  });
  dark.addEventListener("change", () => { relabel(); redraw(); });
  relabel();
  const everything = make("button", { type: "button", class: "all", "aria-pressed": "false" }, "Open all details");
  everything.addEventListener("click", () => {
    const open = everything.getAttribute("aria-pressed") !== "true";
    for (const d of document.querySelectorAll("details")) d.open = open;
    everything.setAttribute("aria-pressed", String(open));
    everything.textContent = open ? "Close all details" : "Open all details";
  });
  document.querySelector(".contents").append(make("div", { class: "tools" }, everything, shade));

  // --- Charts.
  // coloured replaces var(--name) by the theme's value.
  function coloured(value, style) {
    if (typeof value === "string") {
      const name = /^var\((--\w+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map((v) => coloured(v, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, style)]));
    }
    return value;
  }

  const list = (v) => [].concat(v || []);
  const { own, colourOf, hatchings, marked, fitted } = llmparityMarks;

  // zoomable tells whether a chart has a long axis: values or times, with lines or points along it.
  const zoomable = (o) => list(o.yAxis).every((a) => a.type !== "category") && list(o.xAxis).some((a) => /value|time|log/.test(a.type)) && list(o.series).some((s) => /line|scatter/.test(s.type));

  // themed adds what is the same for every chart: the page's type and colours.
  function themed(option, width, state) {
    const style = getComputedStyle(root);
    const at = (name) => style.getPropertyValue(name).trim();
    const o = coloured(Object.assign({}, option, { series: marked(list(option.series)) }), style);
    const muted = at("--muted"), line = at("--line");
    o.animation = false;
    o.color = coloured(own, style);
    o.textStyle = { fontFamily: getComputedStyle(document.body).fontFamily, color: at("--ink") };
    o.backgroundColor = "transparent";
    o.tooltip = Object.assign({}, o.tooltip, {
      confine: true, extraCssText: "max-width: min(84vw, 420px); max-height: 60vh; overflow: hidden; white-space: normal; overflow-wrap: anywhere; font-variant-numeric: tabular-nums",
      backgroundColor: at("--page"), borderColor: line, textStyle: { color: at("--ink"), fontSize: 12 }, transitionDuration: 0,
      valueFormatter: (v) => (Array.isArray(v) ? number.format(v[v.length - 1]) : typeof v === "number" ? number.format(v) : "none"),
    });
    if (o.legend) { // the page has one of buttons in its place
      for (const l of list(o.legend)) {
        l.show = false;
        l.selected = Object.fromEntries(list(o.series).map((s) => [s.name, !state.off.has(s.name)]));
      }
      for (const g of list(o.grid)) if (Number(g.bottom) >= 36) g.bottom = Number(g.bottom) - 26;
    }
    for (const axis of [].concat(o.xAxis || [], o.yAxis || [])) {
      axis.axisLabel = Object.assign({}, axis.axisLabel, { color: muted, fontSize: 12, hideOverlap: true });
      if (axis.name === "seconds") axis.axisLabel.showMaxLabel = false; // it is where the launch ended, not a round number
      if (axis.type === "log") axis.axisLabel.formatter = (v) => number.format(Number(v.toPrecision(3))); // it begins where the data does
      if (axis.type === "value") axis.axisLabel.alignMaxLabel = list(o.xAxis).includes(axis) ? "right" : undefined; // else the edge cuts it
      axis.axisLine = { lineStyle: { color: line } };
      axis.axisTick = { show: false };
      axis.splitLine = { show: axis.type === "value" && axis.name !== "seconds" && !axis.axisLabel.customValues, lineStyle: { color: line } };
      if (axis.type === "value" && list(o.yAxis).some((y) => y.type === "category")) axis.splitNumber = width > 420 ? 5 : 3;
      axis.nameTextStyle = { color: muted, fontSize: 12, align: axis.nameLocation === "middle" ? "center" : "left" };
      if (axis.type === "category") {
        const room = width * 0.4, names = axis.data.map((d) => String((d && d.value) || d)), formatter = fitted(names, labels, room - 4, lengthOf);
        const fits = names.every((name) => formatter(name).split("\n").every((l) => lengthOf(l) <= room)); // the library takes … to be wider
        Object.assign(axis.axisLabel, { color: at("--ink"), interval: 0, hideOverlap: false, lineHeight: 15, formatter }, fits ? {} : { overflow: "breakAll", width: room });
      }
    }
    for (const series of list(o.series)) if (series.markArea) fitNames(series.markArea, width, state);
    if (zoomable(o)) {
      o.dataZoom = [{
        type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, start: state.from, end: state.to,
        moveOnMouseMove: state.from > 0 || state.to < 100, // else a finger on it scrolls the page
        preventDefaultMouseMove: true,
      }];
    }
    for (const s of list(o.series)) if (s.stack === "interval") s.tooltip = { show: false }; // it is drawn as what lies above its lower end
    if (list(o.series)[0] && o.series[0].type === "line") o.series[0].z = 3; // the total lies over its parts
    return o;
  }

  const brush = document.createElement("canvas").getContext("2d");
  function lengthOf(text) {
    brush.font = "12px " + getComputedStyle(document.body).fontFamily;
    return brush.measureText(text).width;
  }

  // fitNames leaves out names of bands that would run into one another; the caption has all of them.
  function fitNames(areas, width, state) {
    const ends = areas.data.map(([from, to]) => [Number(from.xAxis), Number(to.xAxis)]);
    const all = Math.max(...ends.flat()) - Math.min(...ends.flat());
    const pixels = (width - 60) * 100 / Math.max(0.1, state.to - state.from);
    areas.data = areas.data.map(([from, to], i) => {
      const room = all > 0 ? (ends[i][1] - ends[i][0]) / all * pixels : 0;
      return [from.name && from.name.length * 6.4 > room ? Object.assign({}, from, { name: "" }) : from, to];
    });
  }

  const figures = [...document.querySelectorAll("[data-chart]")].map(figure);
  const redraw = () => { for (const f of figures) f.draw(); };

  // figure is a chart's place in the page: its choice, its keys, its zoom. The chart itself is drawn when it comes into sight.
  function figure(place) {
    const id = place.dataset.chart;
    const plot = place.querySelector(".plot");
    const choice = place.querySelector("select");
    const state = { off: new Set(), from: 0, to: 100 };
    const drawing = () => drawings[id][choice ? Number(choice.value) : Number(place.dataset.chosen)];
    const self = { place, state, plot, chart: null, draw, start };
    let width = 0;
    const keys = make("div", { class: "keys", role: "group", "aria-label": "Shown in the chart" });
    plot.after(keys);
    forget();
    if (choice) choice.addEventListener("change", () => { forget(); draw(); });
    if (zoomable(drawing().options)) place.querySelector(".head").append(zooms());
    const title = place.querySelector("h3").textContent.trim();
    place.querySelector(".head").append(make("div", { class: "copy" }, ...["PNG", "SVG"].map((kind) => copier(kind, `Copy the chart ${title} as ${kind}`, () => picture(kind, title)))));
    return self;

    // picture draws the chart anew, with the title and the legend that the page shows beside it.
    function picture(kind, title) {
      const wide = 900, stage = make("div", { style: `position:absolute;left:-9999px;width:${wide}px;height:${Math.max(320, plot.clientHeight + 110)}px` });
      document.body.append(stage);
      const chart = echarts.init(stage, null, { renderer: kind === "SVG" ? "svg" : "canvas", devicePixelRatio: 2 });
      try {
        const o = themed(drawing().options, wide, state), style = getComputedStyle(root);
        const named = list(o.series).filter((s) => s.name).length;
        o.backgroundColor = style.getPropertyValue("--page").trim();
        o.title = { text: title, left: 8, top: 6, textStyle: { fontSize: 15, color: style.getPropertyValue("--ink").trim() } };
        o.legend = Object.assign({}, list(o.legend)[0], { show: named > 1, top: 32, left: 8, bottom: undefined, textStyle: { color: style.getPropertyValue("--ink").trim() } });
        for (const g of list(o.grid)) Object.assign(g, { top: 74, bottom: Math.max(8, Number(g.bottom) || 0), left: 8 });
        chart.setOption(o);
        chart.getZr().flush();
        if (kind === "SVG") return new Blob([chart.renderToSVGString()], { type: "text/plain" });
        const bytes = atob(chart.getDataURL({ type: "png", pixelRatio: 2 }).split(",")[1]);
        return new Blob([Uint8Array.from(bytes, (c) => c.charCodeAt(0))], { type: "image/png" });
      } finally {
        chart.dispose();
        stage.remove();
      }
    }

    function start() {
      if (self.chart) return;
      self.chart = echarts.init(plot, null, { renderer: "svg" });
      const done = () => { performance.mark("chart " + id); self.chart.off("finished", done); };
      self.chart.on("finished", done);
      self.chart.on("datazoom", () => {
        const z = self.chart.getOption().dataZoom[0];
        zoomed(z.start, z.end);
      });
      draw();
      new ResizeObserver(() => {
        if (plot.clientWidth === width) return;
        self.chart.resize();
        draw();
      }).observe(plot);
    }

    function draw() {
      if (!self.chart) return;
      width = plot.clientWidth;
      self.chart.setOption(themed(drawing().options, width, state), true);
      place.querySelector(".caption").textContent = drawing().caption;
    }

    // forget goes back to what a drawing shows first, whole.
    function forget() {
      const o = drawing().options;
      const selected = Object.assign({}, ...list(o.legend).map((l) => l.selected || {}));
      state.off = new Set(Object.keys(selected).filter((name) => selected[name] === false));
      state.from = 0;
      state.to = 100;
      keys.replaceChildren(...(o.legend && list(o.legend).some((l) => l.show !== false) ? legend(o) : []));
    }

    // legend has a button a series: it works by mouse, by touch and by keyboard.
    function legend(o) {
      const seen = new Set();
      const series = marked(list(o.series)).map((s, n) => [s, n]).filter(([s]) => s.name && !seen.has(s.name) && seen.add(s.name));
      return series.map(([s, n]) => {
        const key = make("button", { type: "button", class: "key", "aria-pressed": String(!state.off.has(s.name)), title: s.name }, sample(s, n), make("bdi", {}, s.name));
        key.addEventListener("click", () => {
          const show = state.off.has(s.name);
          if (show) state.off.delete(s.name); else state.off.add(s.name);
          key.setAttribute("aria-pressed", String(show));
          if (self.chart) self.chart.dispatchAction({ type: show ? "legendSelect" : "legendUnSelect", name: s.name });
          say(s.name + (show ? " is shown" : " is hidden"));
        });
        return key;
      });
    }

    // sample is a series' colour and stroke.
    function sample(s, n) {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      for (const [k, v] of Object.entries({ width: 22, height: 10, viewBox: "0 0 22 10", "aria-hidden": "true" })) svg.setAttribute(k, v);
      const shape = document.createElementNS("http://www.w3.org/2000/svg", "path");
      const colour = (s.areaStyle && s.areaStyle.color) || colourOf(s, n);
      if (s.type === "line" && !s.areaStyle) {
        const dash = { dashed: "5 3", dotted: "2 2.5" }[s.lineStyle && s.lineStyle.type] || list(s.lineStyle && s.lineStyle.type).join(" ");
        shape.setAttribute("d", "M0 5H22");
        shape.style.cssText = `fill:none;stroke:${colour};stroke-width:${Math.min(4, (s.lineStyle && s.lineStyle.width) || 2)};stroke-dasharray:${/^[\d. ]+$/.test(dash) ? dash : "none"}`;
      } else {
        shape.setAttribute("d", s.type === "scatter" ? "M11 1a4 4 0 1 0 .01 0z" : "M3 1h16v8h-16z");
        shape.style.cssText = `fill:${colour};fill-opacity:${(s.itemStyle && s.itemStyle.opacity) || (s.areaStyle && s.areaStyle.opacity) || 1}`;
      }
      svg.append(shape);
      if (s.itemStyle && s.itemStyle.decal) svg.append(hatch(s.itemStyle.decal));
      return svg;
    }

    function hatch(decal) {
      const marks = document.createElementNS("http://www.w3.org/2000/svg", "path");
      marks.setAttribute("d", [, "M4 9l7-8M11 9l7-8", "M4 1l7 8M11 1l7 8", "M3 3.5h16M3 6.5h16", "M7 1v8M11 1v8M15 1v8", "M5 3h1M10 3h1M15 3h1M7 7h1M12 7h1M17 7h1"][hatchings.findIndex((h) => h && h.dashArrayX === decal.dashArrayX && h.rotation === decal.rotation)]);
      marks.style.cssText = "fill:none;stroke:var(--hatch);stroke-width:1.4";
      return marks;
    }

    // zooms has a button for whatever a wheel or two fingers can do.
    function zooms() {
      const to = (from, end) => {
        zoomed(from, end);
        if (self.chart) self.chart.dispatchAction({ type: "dataZoom", dataZoomIndex: 0, start: state.from, end: state.to });
        say(state.from === 0 && state.to === 100 ? "The whole chart" : `${Math.round(state.from)} to ${Math.round(state.to)} percent of the chart`);
      };
      const by = (factor) => {
        const middle = (state.from + state.to) / 2, half = Math.min(50, Math.max(0.5, (state.to - state.from) / 2 * factor));
        const begin = Math.min(Math.max(0, middle - half), 100 - 2 * half);
        to(begin, begin + 2 * half);
      };
      const move = (share) => {
        const length = state.to - state.from, begin = Math.min(Math.max(0, state.from + share * length), 100 - length);
        to(begin, begin + length);
      };
      const button = (sign, words, act) => {
        const b = make("button", { type: "button", "aria-label": words, title: words }, sign);
        b.addEventListener("click", act);
        return b;
      };
      return make("div", { class: "zooms", role: "group", "aria-label": "Zoom", title: "Ctrl with the wheel or two fingers zoom as well; dragging moves" },
        button("−", "Zoom out", () => by(2)), button("+", "Zoom in", () => by(0.5)), button("‹", "Earlier", () => move(-0.5)),
        button("›", "Later", () => move(0.5)), button("All", "All of the chart", () => to(0, 100)));
    }

    function zoomed(from, to) {
      const was = state.from > 0 || state.to < 100;
      [state.from, state.to] = [from, to];
      const is = from > 0 || to < 100;
      if (self.chart && was !== is) self.chart.setOption({ dataZoom: [{ moveOnMouseMove: is }] });
    }
  }

  const sight = new IntersectionObserver((seen) => {
    for (const s of seen.filter((s) => s.isIntersecting)) {
      sight.unobserve(s.target);
      figures.find((f) => f.place === s.target).start();
    }
  }, { rootMargin: "300px" });
  for (const f of figures) sight.observe(f.place);

  // --- Print: what is open, drawn, in light colours, as wide as paper.
  addEventListener("beforeprint", () => {
    light("light");
    root.classList.add("print");
    for (const f of figures.filter((f) => !f.place.closest("details:not([open])"))) {
      f.start();
      f.chart.resize();
      f.draw();
      f.chart.getZr().flush();
      for (const svg of f.plot.querySelectorAll("svg")) svg.setAttribute("viewBox", `0 0 ${svg.getAttribute("width")} ${svg.getAttribute("height")}`); // paper may be of another width
    }
  });
  addEventListener("afterprint", () => {
    root.classList.remove("print");
    light(chosen);
    for (const svg of document.querySelectorAll(".plot svg")) svg.removeAttribute("viewBox");
    for (const f of figures) if (f.chart) f.chart.resize();
    redraw();
  });

  // --- Links open what they lead to.
  function open() {
    const to = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!to) return;
    for (let d = to.closest("details"); d; d = d.parentElement.closest("details")) d.open = true;
    to.scrollIntoView();
  }
  addEventListener("hashchange", open);
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[href^='#']");
    if (!link) return;
    if (link.hash === location.hash) open();
    if (link.classList.contains("anchor") && navigator.clipboard) {
      navigator.clipboard.writeText(link.href).then(() => say("Link copied"), () => {});
    }
  });
  open();

  // --- A figure's name shows its definition while it is pointed at or has the focus.
  for (const name of document.querySelectorAll(".def")) {
    const words = document.getElementById(name.getAttribute("popovertarget"));
    const show = (on) => {
      if (words.matches(":popover-open") === on) return;
      if (!on) { words.hidePopover(); return; }
      words.showPopover();
      const at = name.getBoundingClientRect(), high = words.offsetHeight;
      words.style.left = Math.max(12, Math.min(at.left, innerWidth - words.offsetWidth - 12)) + "px";
      words.style.top = (at.bottom + high + 12 > innerHeight && at.top > high ? at.top - high - 6 : at.bottom + 6) + "px";
    };
    name.setAttribute("aria-describedby", words.id);
    name.addEventListener("pointerenter", (e) => { if (e.pointerType === "mouse") show(true); });
    name.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse" && document.activeElement !== name) show(false); });
    name.addEventListener("focus", () => show(true));
    name.addEventListener("blur", () => show(false));
    name.addEventListener("click", (e) => { e.preventDefault(); show(true); });
  }

  // --- Text to copy as it stands.
  for (const code of document.querySelectorAll("pre.code")) {
    code.after(make("div", { class: "copy" }, copier("Copy BibTeX", "Copy BibTeX of the runs and of llmparity", () => new Blob([code.textContent], { type: "text/plain" }))));
  }

  // --- Tables.
  const words = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  for (const table of document.querySelectorAll("table.grid, table.summary, table.sides")) sortable(table);

  function sortable(table) {
    const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
    for (const row of rows) [...row.cells].forEach((c, i) => { if (i > 0 && heads[i]) c.dataset.head = heads[i].textContent; });
    // Cards on a phone are no table to a browser; these words keep it one.
    table.setAttribute("role", "table");
    for (const part of table.querySelectorAll("thead, tbody")) part.setAttribute("role", "rowgroup");
    for (const row of table.rows) row.setAttribute("role", "row");
    for (const cell of table.querySelectorAll("td")) cell.setAttribute("role", "cell");
    for (const cell of table.querySelectorAll("tbody th")) cell.setAttribute("role", "rowheader");
    for (const cell of heads) cell.setAttribute("role", "columnheader");
    if (rows.length > 2 && !table.classList.contains("two")) heads.forEach((head, i) => {
      const words = `Sort by ${head.textContent.trim()}`;
      const button = make("button", { type: "button", class: "sort", "aria-label": words, title: words });
      head.append(button);
      button.addEventListener("click", () => sort(head, i));
    });
    if (rows.length > 9) {
      filter(table, rows);
      fold(table, rows.length);
    }
    table.parentElement.after(make("div", { class: "copy" }, copier("Copy CSV", `Copy CSV of ${table.caption.textContent}`, () => new Blob([csv(table)], { type: "text/plain" }))));

    function sort(head, i) {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const h of heads) h.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[i] ? keyOf(row.cells[i]) : undefined;
      const text = (row) => (row.cells[i] ? row.cells[i].textContent.trim() : "");
      const numeric = rows.some((r) => value(r) !== undefined) && rows.every((r) => value(r) !== undefined || /^(|–.*)$/.test(text(r)));
      const empty = (row) => (numeric ? value(row) === undefined : /^–?$/.test(text(row)));
      const order = [...rows].sort((a, b) => {
        if (empty(a) || empty(b)) return empty(a) - empty(b); // what is not known comes last, either way
        const d = numeric ? value(a) - value(b) : words.compare(text(a), text(b));
        return down ? -d : d;
      });
      body.append(...order);
      say(`Sorted by ${head.textContent}, ${down ? "descending" : "ascending"}`);
    }
  }

  // csv is what a table shows, in its order.
  function csv(table) {
    const field = (cell) => {
      const own = cell.cloneNode(true);
      for (const note of own.querySelectorAll("small")) note.prepend(" ");
      const text = own.textContent.replace(/\s+/g, " ").trim();
      return /[",]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
    };
    return [...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map(field).join(",")).join("\n") + "\n";
  }

  // keyOf is the number that a cell is sorted by: its own key, or what stands there.
  function keyOf(cell) {
    if (cell.dataset.v !== undefined) return cell.dataset.v;
    const text = cell.textContent.trim();
    return /^-?\d+(\.\d+)?$/.test(text) ? text : undefined;
  }

  // fold leaves the first rows of a long table where it is shown as cards, and a button for the rest.
  function fold(table, all) {
    const more = make("button", { type: "button", class: "more", "aria-expanded": "false" }, `All ${all} rows`);
    more.addEventListener("click", () => {
      const full = table.classList.toggle("full");
      more.setAttribute("aria-expanded", String(full));
      more.textContent = full ? "Fewer rows" : `All ${all} rows`;
    });
    table.classList.add("long");
    table.after(more);
  }

  // filter puts a field above a long table.
  function filter(table, rows) {
    const field = make("input", { type: "search", placeholder: " ", autocomplete: "off", spellcheck: "false" });
    const count = make("span", { class: "quiet" });
    field.addEventListener("input", () => {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      table.classList.toggle("filtered", wanted.length > 0);
      for (const row of rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !wanted.every((w) => text.includes(w));
        if (!row.hidden) shown++;
      }
      count.textContent = shown === rows.length ? "" : `${shown} of ${rows.length} rows`;
      say(`${shown} of ${rows.length} rows`);
    });
    table.parentElement.before(make("label", { class: "filter" }, "Filter ", make("span", { class: "unseen" }, table.caption.textContent + " "), field, count));
  }

  // A table that fits needs no stop of the keyboard.
  const fits = new ResizeObserver((seen) => {
    for (const { target: box } of seen) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0; else box.removeAttribute("tabindex");
    }
  });
  for (const box of document.querySelectorAll(".scroll")) fits.observe(box);

  // --- Where the reader is: the first section that is in the upper part of the window.
  const links = new Map([...document.querySelectorAll(".contents a")].map((a) => [a.hash.slice(1), a]));
  const sections = [...document.querySelectorAll("main > section")].filter((s) => links.has(s.id));
  const inSight = new Set();
  const here = new IntersectionObserver((seen) => {
    for (const s of seen) inSight[s.isIntersecting ? "add" : "delete"](s.target);
    const first = sections.find((s) => inSight.has(s));
    if (!first) return;
    for (const a of links.values()) a.removeAttribute("aria-current");
    links.get(first.id).setAttribute("aria-current", "true");
  }, { rootMargin: "-5% 0px -60% 0px" });
  for (const s of sections) here.observe(s);
})();
