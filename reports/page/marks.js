// What tells engines and layers apart beside their colours, on the page and in figures for paper alike.
const llmparityMarks = (() => {
  "use strict";
  const own = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)"];
  const colourOf = (s, n) => (s.lineStyle && s.lineStyle.color) || (s.itemStyle && s.itemStyle.color) || own[n % own.length];

  // Colour is never all that tells things apart: engines in one chart have strokes and symbols of their own too, layers a hatching.
  // The first six are the engines'; the others are for more lines of one engine.
  const strokes = ["solid", [9, 3], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2], [14, 2], [3, 6], [10, 2, 2, 2, 2, 2], [5, 6], [1, 5], [14, 4, 5, 4]];
  const symbols = ["circle", "diamond", "triangle", "rect", "roundRect", "pin", "arrow", "emptyCircle", "emptyDiamond", "emptyTriangle", "emptyRect", "emptyRoundRect"];
  const hatchings = [null, { dashArrayX: [1, 0], dashArrayY: [1.5, 5], rotation: Math.PI / 4 }, { dashArrayX: [1, 0], dashArrayY: [1.5, 5], rotation: -Math.PI / 4 },
    { dashArrayX: [1, 0], dashArrayY: [1.5, 5] }, { dashArrayX: [1, 0], dashArrayY: [1.5, 5], rotation: Math.PI / 2 }, { symbol: "circle", symbolSize: .5, dashArrayX: [[5, 5], [0, 5, 5, 0]], dashArrayY: [4, 0] }];
  function marked(series) {
    const engine = (s) => { const m = /^var\(--c(\d)\)$/.exec(colourOf(s, 0)); return m ? Number(m[1]) : -1; };
    const engines = new Set(series.map(engine).filter((n) => n >= 0));
    const bars = series.filter((s) => s.type === "bar"), stacked = bars.filter((s) => s.stack);
    const stroke = (s) => s.lineStyle && s.lineStyle.type;
    const solid = series.every((s) => s.type !== "line" || !stroke(s) || stroke(s) === "solid"); // else strokes tell cells apart
    const taken = {}; // what has a look: the names of its series

    // free is the first look from one on that no series of another name has in the same colour; with all taken, that one.
    function free(s, looks, from) {
      const at = [...looks.keys()].map((n) => (from + n) % looks.length);
      const key = (n) => JSON.stringify([s.type, colourOf(s, 0), looks[n], (s.itemStyle || {}).borderColor]);
      const n = at.find((i) => (taken[key(i)] || s.name) === s.name);
      const found = n === undefined ? from % looks.length : n;
      taken[key(found)] = s.name;
      return looks[found];
    }
    const before = (of, s) => of.filter((o) => colourOf(o, 0) === colourOf(s, 0)).indexOf(s);

    return series.map((s) => {
      const n = engine(s), copy = Object.assign({}, s);
      if (s.type === "line" && s.name) {
        const own = n >= 0 && engines.size > 1 && solid ? strokes[n] : stroke(s) || "solid";
        const at = strokes.findIndex((o) => String(o) === String(own));
        copy.lineStyle = Object.assign({}, s.lineStyle, { type: at < 0 ? free(s, [own, ...strokes.slice(1)], 0) : free(s, strokes, at) });
      }
      if (n >= 0 && /line|scatter/.test(s.type) && !s.symbol && s.name && (engines.size > 1 || s.type === "scatter")) copy.symbol = free(Object.assign({}, s, { type: "symbol" }), symbols, engines.size > 1 ? n : 0);
      if (bars.length > 1 && bars.includes(s)) {
        const decal = free(s, hatchings, s.stack ? stacked.indexOf(s) : before(bars, s));
        copy.itemStyle = Object.assign({ borderColor: "var(--page)", borderWidth: 0.5 }, s.itemStyle, decal ? { decal: Object.assign({ color: "var(--hatch)" }, decal) } : {});
      }
      return copy;
    });
  }

  // fitted shortens the first lines of names, all to the same width: the widest at which each has room.
  function fitted(names, labels, room, lengthOf) {
    const formsOf = (name) => { const first = name.split("\n")[0]; return Object.hasOwn(labels, first) ? labels[first] : null; };
    const at = (name, level) => { const forms = formsOf(name); return forms && level >= 0 ? [forms[level], ...name.split("\n").slice(1)].join("\n") : name; };
    const cells = names.filter(formsOf), last = cells.length ? formsOf(cells[0]).length - 1 : -1;
    let level = -1;
    while (level < last && cells.some((name) => lengthOf(at(name, level).split("\n")[0]) > room)) level++;
    return (name) => at(name, level);
  }

  return { own, colourOf, hatchings, marked, fitted };
})();
