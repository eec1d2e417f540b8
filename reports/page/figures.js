// Draws figures for paper: a chart's options as an SVG at its size on paper, and the same as pixels. Nothing is fetched.
"use strict";
(library, css) => {
  const inch = 96; // what a browser means by one
  const pad = 6, titleSize = 12, titleLine = 15, size = 10, lineHeight = 13; // 9 and 7.5 points
  const family = "Helvetica, Arial, sans-serif";
  const sheet = document.createElement("style");
  sheet.textContent = css;
  document.head.append(sheet);
  const brush = document.createElement("canvas").getContext("2d");
  const root = getComputedStyle(document.documentElement);
  const paper = { "--page": "#ffffff", "--veil": "rgba(255, 255, 255, .55)", "--hatch": "rgba(255, 255, 255, .6)" };
  const colour = (name) => paper[name] || root.getPropertyValue(name).trim();
  const ink = colour("--ink"), muted = colour("--muted"), rule = colour("--line");

  function coloured(value) {
    if (typeof value === "string") {
      const name = /^var\((--\w+)\)$/.exec(value);
      return name ? colour(name[1]) : value;
    }
    if (Array.isArray(value)) return value.map(coloured);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v)]));
    return value;
  }

  const round = (x) => Math.round(x * 1000) / 1000;

  function width(text, font) {
    brush.font = `${font} ${family}`;
    return brush.measureText(text).width;
  }

  // wrap breaks a text at blanks; what is too long by itself is broken anywhere.
  function wrap(text, room, font) {
    const lines = [];
    for (const part of text.split("\n")) {
      let line = "";
      for (const word of part.split(" ")) {
        const longer = line ? line + " " + word : word;
        if (width(longer, font) <= room) { line = longer; continue; }
        if (line) lines.push(line);
        line = "";
        for (const letter of word) {
          if (line && width(line + letter, font) > room) { lines.push(line); line = ""; }
          line += letter;
        }
      }
      lines.push(line);
    }
    return lines;
  }

  // shown drops what a reader of the page would have to click for, and what only a page has.
  function shown(o) {
    const selected = (o.legend && o.legend.selected) || {};
    const series = o.series.filter((s) => selected[s.name] !== false && s.data && s.data.length);
    o.series = series.length ? series : o.series;
    delete o.tooltip;
    o.animation = false;
    for (const s of o.series) {
      s.silent = true;
      s.emphasis = { disabled: true };
      if (s.type === "line" && !s.showSymbol) s.symbol = "none";
      const drawn = (s.lineStyle || {}).width || 1;
      if (s.type === "line") s.lineStyle = Object.assign({}, s.lineStyle, drawn < .1 ? { width: 0, opacity: 0 } : { width: Math.max(.8, drawn * .7) });
      if (s.label) s.label.fontSize = size;
      if (s.type === "scatter") s.data.forEach((d) => { if (d && d.symbolSize) d.symbolSize = Math.max(3, d.symbolSize * .66); });
      if (s.markLine && s.markLine.lineStyle) s.markLine.lineStyle.width = Math.min(1.5, s.markLine.lineStyle.width || 1);
      for (const mark of [s.markArea, s.markLine]) if (mark) Object.assign(mark, { silent: true, animation: false, label: Object.assign({}, mark.label, { fontSize: 9.33 }) });
    }
    return o;
  }

  // keys lays a legend out in rows: as many as its entries take. Where the page has none, since each bar bears its name, marks are grey.
  function keys(o, room, labels) {
    const named = o.series.filter((s, i) => s.name && i === o.series.findIndex((t) => t.name === s.name));
    const coloured = o.legend && o.legend.show !== false;
    if (named.length < 2 && !named.some((s) => s.type === "line")) return { option: { show: false }, height: 0 };
    const itemWidth = 16, gap = 9, high = 10;
    const short = llmparityMarks.fitted(named.map((s) => s.name), labels, room - itemWidth - 16, (l) => width(l, `${size}px`));
    const fitting = (name) => wrap(short(name), room - itemWidth - 16, `${size}px`).map((l, i, all) => (all.length > 1 ? l + "…" : l))[0];
    let rows = 1, x = 0;
    for (const s of named) {
      const w = itemWidth + 5 + width(fitting(s.name), `${size}px`);
      if (x > 0 && x + w > room) { rows++; x = 0; }
      x += w + gap;
    }
    return { height: rows * (high + gap) - gap, option: { show: true, type: "plain", data: named.map((s) => key(o.series.find((t) => t.name === s.name && t.areaStyle) || s, coloured)), left: pad, right: pad, itemWidth, itemHeight: 8, formatter: fitting,
      itemGap: gap, padding: 0, align: "left", lineStyle: { width: "inherit" }, textStyle: { color: ink, fontSize: size, lineHeight: high, fontFamily: family } } };
  }

  // key is one entry: a line is a line, a band a field, a dot a dot.
  function key(s, coloured) {
    const entry = { name: s.name };
    if (s.type === "line" && s.areaStyle) Object.assign(entry, { icon: "rect", itemStyle: { color: s.areaStyle.color, opacity: s.areaStyle.opacity } });
    else if (s.type === "line" && s.symbol === "none") entry.itemStyle = { opacity: 0 };
    else if (s.type === "scatter") entry.icon = /^[a-z]+$/i.test(s.symbol || "") && s.symbol !== "none" ? s.symbol : "circle";
    else if (s.type === "bar" && !coloured) Object.assign(entry, { icon: "rect", itemStyle: { color: s.itemStyle && s.itemStyle.color ? "#b9bcc1" : "#5c626b" } });
    else if (s.type === "bar") entry.icon = "rect";
    return entry;
  }

  // whole tells whether an axis that ends with the data ends with a whole number.
  function whole(o, vertical, extreme) {
    let end = null;
    for (const s of o.series) {
      for (const d of s.data) {
        const pair = Array.isArray(d) ? d : (d || {}).value, v = Array.isArray(pair) ? Number(pair[vertical ? 1 : 0]) : NaN;
        if (!Number.isNaN(v)) end = end === null ? v : extreme(end, v);
      }
    }
    return Number.isInteger(end);
  }

  // axes gives them the look of paper.
  function axes(o, figure, plot) {
    const many = (list) => [].concat(list || []);
    const sideways = many(o.yAxis).some((a) => a.type === "category"); // bars lie
    for (const [axis, vertical] of [...many(o.xAxis).map((a) => [a, false]), ...many(o.yAxis).map((a) => [a, true])]) {
      const label = { color: ink, fontSize: size, fontFamily: family, hideOverlap: true };
      if (axis.name === "seconds") {
        label.showMaxLabel = false; // it is where the launch ended, not a round number
        axis.name = "Time (s)";
      }
      if (axis.max === "dataMax" && !whole(o, vertical, Math.max)) label.showMaxLabel = false;
      if (axis.min === "dataMin" && !whole(o, vertical, Math.min)) label.showMinLabel = false;
      const name = (axis.name || "").split(", logarithmic")[0];
      if (name && name === figure.raw) axis.name = `${figure.quantity} (${name})`;
      else if (name === "%") axis.name = "Share (%)";
      axis.axisLabel = Object.assign({}, axis.axisLabel, label);
      axis.axisLine = { show: axis.type !== "value" || vertical === sideways, lineStyle: { color: ink, width: .8 }, onZero: (axis.axisLine || {}).onZero !== false };
      axis.axisTick = { customValues: (axis.axisTick || {}).customValues, show: axis.type !== "category" && vertical === sideways, length: 3, lineStyle: { color: ink, width: .8 } };
      axis.splitLine = { show: vertical !== sideways && axis.type !== "category", lineStyle: { color: rule, width: .8 } };
      axis.splitArea = { show: false };
      axis.nameTextStyle = { color: ink, fontSize: size, fontFamily: family };
      if (vertical !== sideways && !axis.name && axis.type !== "category") axis.name = figure.unit;
      if (axis.name) { axis.nameLocation = "middle"; axis.nameGap = vertical ? 8 : 20; }
      if (axis.name && vertical) axis.nameRotate = 90;
      if (axis.type === "category") {
        const names = axis.data.map((d) => String((d && d.value) || d)), lengthOf = (l) => width(l, `${size}px`);
        const most = plot * 0.45, formatter = llmparityMarks.fitted(names, figure.labels, most, lengthOf);
        const fits = names.every((name) => formatter(name).split("\n").every((l) => lengthOf(l) <= most)); // the library takes … to be wider
        Object.assign(axis.axisLabel, { interval: 0, hideOverlap: false, lineHeight, formatter }, fits ? {} : { overflow: "breakAll", width: most });
      }
    }
  }

  // laid puts title, legend and plot under one another; the figure is as high as that takes.
  function laid(option, figure) {
    const o = shown(coloured(Object.assign({}, option, { series: llmparityMarks.marked(option.series) }))), w = figure.width * inch, room = w - 2 * pad;
    const title = wrap(figure.title, room, `600 ${titleSize}px`), under = wrap(figure.subtitle, room, `${size}px`);
    o.title = { text: title.join("\n"), subtext: under.join("\n"), left: pad, top: pad, padding: 0, itemGap: 2,
      textStyle: { fontSize: titleSize, lineHeight: titleLine, fontWeight: 600, color: ink, fontFamily: family },
      subtextStyle: { fontSize: size, lineHeight, color: muted, fontFamily: family } };
    let top = pad + title.length * titleLine + 2 + under.length * lineHeight + 6;
    const legend = keys(o, room, figure.labels);
    o.legend = legend.option;
    o.legend.top = top;
    top += legend.height + (o.series.some((s) => s.markArea) ? 20 : 12);
    axes(o, figure, room - 44);
    const step = inch / 10, height = Math.ceil((top + figure.plot * inch + pad) / step) * step;
    o.grid = { left: pad, right: pad + 8, top, bottom: pad, outerBoundsMode: "same", outerBoundsContain: "all" };
    o.backgroundColor = "#ffffff";
    o.textStyle = { fontFamily: family, color: ink };
    return { option: o, w, height };
  }

  // written gives the drawing its size on paper and its words, and nothing that only a page needs.
  function written(svg, figure, w, height) {
    const doc = new DOMParser().parseFromString(svg, "image/svg+xml");
    const wrong = doc.querySelector("parsererror");
    if (wrong) throw new Error("the drawing is no SVG: " + wrong.textContent);
    const top = doc.documentElement;
    for (const style of top.querySelectorAll("style")) style.remove();
    for (const e of top.querySelectorAll("*")) {
      for (const a of [...e.attributes]) if (a.name === "class" || a.name === "pointer-events" || a.name.startsWith("ecmeta_")) e.removeAttribute(a.name);
    }
    for (const [name, value] of [["width", figure.width + "in"], ["height", round(height / inch) + "in"], ["viewBox", `0 0 ${w} ${round(height)}`], ["role", "img"]]) top.setAttribute(name, value);
    const words = (name, text) => Object.assign(doc.createElementNS(top.namespaceURI, name), { textContent: text });
    top.prepend(words("title", figure.title + " – " + figure.subtitle), words("desc", figure.caption));
    return new XMLSerializer().serializeToString(doc) + "\n";
  }

  async function pixels(svg, wide, high) {
    const image = new Image();
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(svg);
    await image.decode();
    const canvas = Object.assign(document.createElement("canvas"), { width: wide, height: high });
    const on = canvas.getContext("2d", { willReadFrequently: true, alpha: false });
    on.fillStyle = "#ffffff";
    on.fillRect(0, 0, wide, high);
    on.drawImage(image, 0, 0, wide, high);
    return canvas.toDataURL("image/png").split(",")[1];
  }

  globalThis.llmparityFigure = async (figure) => {
    const frame = document.createElement("iframe"); // a world of its own: the library numbers what it draws
    document.body.append(frame);
    try {
      frame.contentWindow.eval(library);
      let last = 1; // the library draws zigzags by chance, and the same data must give the same bytes
      frame.contentWindow.Math.random = () => { last = last * 16807 % 2147483647; return last / 2147483647; };
      if (figure.options.series.some((s) => s.name && width(s.name, `${size}px`) > figure.width * inch - 40)) figure.width = figure.widest;
      const { option, w, height } = laid(figure.options, figure);
      const chart = frame.contentWindow.echarts.init(null, null, { renderer: "svg", ssr: true, width: w, height });
      chart.setOption(option);
      const svg = written(chart.renderToSVGString(), figure, w, height);
      chart.dispose();
      const high = Math.round(height / inch * figure.dpi);
      return JSON.stringify({ svg, width: figure.width, height: round(height / inch), png: await pixels(svg, Math.round(figure.width * figure.dpi), high) });
    } finally {
      frame.remove();
    }
  };
  return "ready";
}
