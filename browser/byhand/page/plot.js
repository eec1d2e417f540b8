// The chart of memory over time, in the report's colours.

import "./echarts.js";

const colours = ["--c0", "--p0", "--p1", "--p2", "--p3"];
const most = 2400; // points a line
const drawEvery = 500; // ms: drawing takes CPU time from what is measured

export function plot(place) {
  const chart = globalThis.echarts.init(place, null, { renderer: "canvas" });
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let lines = new Map(), phases = [], begun = performance.now(), timer;

  const draw = () => {
    timer = undefined;
    const muted = style("--muted"), line = { lineStyle: { color: style("--line") } };
    const axis = { type: "value", axisLabel: { color: muted }, axisLine: line, splitLine: line, nameTextStyle: { color: muted } };
    const series = [...lines].map(([name, data], i) => ({ name, data, type: "line", showSymbol: false, animation: false, step: "end", color: style(colours[i % colours.length]) }));
    if (series.length) {
      series[0].markArea = { silent: true, label: { color: muted, fontSize: 11 }, data: phases.map(([name, from], i) =>
        [{ name, xAxis: from, itemStyle: { color: i % 2 ? "transparent" : style("--band") } }, { xAxis: phases[i + 1]?.[1] ?? seconds() }]) };
    }
    chart.setOption({
      animation: false, backgroundColor: "transparent", textStyle: { fontFamily: getComputedStyle(document.body).fontFamily }, series,
      grid: { left: 52, right: 16, top: 34, bottom: 40 }, legend: { bottom: 0, type: "scroll", textStyle: { color: style("--ink") } },
      xAxis: { ...axis, name: "s", max: "dataMax", splitLine: { show: false } }, yAxis: { ...axis, min: 0 },
    }, { notMerge: true });
  };
  const seconds = () => Number(((performance.now() - begun) / 1000).toFixed(2));
  const soon = () => { timer ??= setTimeout(draw, drawEvery); };

  addEventListener("resize", () => chart.resize());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  draw();
  return {
    begin() { lines = new Map(); phases = []; begun = performance.now(); soon(); },
    phase(name) { phases.push([name, seconds()]); soon(); },
    add(name, value) {
      const points = lines.get(name) ?? [];
      if (points.length < most) points.push([seconds(), Number(value.toFixed(2))]);
      lines.set(name, points);
      soon();
    },
  };
}
