// What tells engines and layers apart beside their colours, on the page and in figures for paper alike.
const llmparityMarks = (() => {
  "use strict";
  const own = ["var(--c0)", "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)", "var(--c5)"];
  const colourOf = (s, n) => (s.lineStyle && s.lineStyle.color) || (s.itemStyle && s.itemStyle.color) || own[n % own.length];

  // Colour is never all that tells things apart: engines in one chart have strokes and symbols of their own too, layers a hatching.
  const strokes = ["solid", [9, 3], [2, 3], [10, 3, 2, 3], [5, 2], [1, 2]];
  const symbols = ["circle", "diamond", "triangle", "rect", "roundRect", "pin"];
  const hatchings = [null, { dashArrayX: [1, 0], dashArrayY: [1.5, 5], rotation: Math.PI / 4 }, { dashArrayX: [1, 0], dashArrayY: [1.5, 5], rotation: -Math.PI / 4 },
    { dashArrayX: [1, 0], dashArrayY: [1.5, 5] }, { dashArrayX: [1, 0], dashArrayY: [1.5, 5], rotation: Math.PI / 2 }, { symbol: "circle", symbolSize: .5, dashArrayX: [[5, 5], [0, 5, 5, 0]], dashArrayY: [4, 0] }];
  function marked(series) {
    const engine = (s) => { const m = /^var\(--c(\d)\)$/.exec(colourOf(s, 0)); return m ? Number(m[1]) : -1; };
    const engines = new Set(series.map(engine).filter((n) => n >= 0));
    const stacked = series.filter((s) => s.type === "bar" && s.stack);
    const stroke = (s) => s.lineStyle && s.lineStyle.type;
    const solid = series.every((s) => s.type !== "line" || !stroke(s) || stroke(s) === "solid"); // else strokes tell cells apart
    return series.map((s) => {
      const n = engine(s), copy = Object.assign({}, s);
      if (n >= 0 && engines.size > 1) {
        if (s.type === "line" && (!stroke(s) || solid)) copy.lineStyle = Object.assign({}, s.lineStyle, { type: strokes[n] });
        if (/line|scatter/.test(s.type) && !s.symbol) copy.symbol = symbols[n];
      }
      if (stacked.length > 1 && stacked.includes(s)) {
        const decal = hatchings[stacked.indexOf(s) % hatchings.length];
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
