// The chart of memory over time, in the report's colours.

import "./echarts.js";

const colours = ["--c0", "--p0", "--p1", "--p2", "--p3"];
const most = 2400; // points a line
const drawEvery = 1000; // ms: drawing takes CPU time from what is measured
const left = 52, right = 16; // pixels beside the lines
const letter = 6.5; // pixels of a phase's name

// plot draws in a place, and calls also with each drawing.
export function plot(place, also) {
  const chart = globalThis.echarts.init(place, null, { renderer: "canvas" });
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  let lines = new Map(), phases = [], begun = performance.now(), end = 0, timer; // end of what is known

  const draw = () => {
    clearTimeout(timer);
    timer = undefined;
    also();
    if (lines.size === 0 && phases.length === 0) return;
    chart.resize(); // it may have been hidden
    const wide = (from, to) => (to - from) / end * (chart.getWidth() - left - right);
    const muted = style("--muted"), line = { lineStyle: { color: style("--line") } };
    const axis = { type: "value", axisLabel: { color: muted }, axisLine: line, splitLine: line, nameTextStyle: { color: muted } };
    const series = [...lines].map(([name, data], i) => ({ name, data: [...data, [end, data.at(-1)[1]]], type: "line", showSymbol: false, animation: false, step: "end", color: style(colours[i % colours.length]) }));
    if (series.length) {
      series[0].markArea = { silent: true, data: phases.map(([name, from], i) => {
        const to = phases[i + 1]?.[1] ?? end, fits = wide(from, to) > letter * name.length;
        return [{ name, xAxis: from, label: { show: fits, color: muted, fontSize: 11 }, itemStyle: { color: i % 2 ? "transparent" : style("--band") } }, { xAxis: to }];
      }) };
    }
    chart.setOption({
      animation: false, backgroundColor: "transparent", textStyle: { fontFamily: getComputedStyle(document.body).fontFamily }, series,
      grid: { left, right, top: 34, bottom: 40 }, legend: { bottom: 0, type: "scroll", textStyle: { color: style("--ink") } },
      xAxis: { ...axis, name: "s", max: end, splitLine: { show: false } }, yAxis: { ...axis, min: 0 },
    }, { notMerge: true });
  };
  const seconds = () => Number(((performance.now() - begun) / 1000).toFixed(2));
  const soon = () => { timer ??= setTimeout(draw, drawEvery); };

  addEventListener("resize", () => chart.resize());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon);
  return {
    soon, now: draw,
    begin() { lines = new Map(); phases = []; begun = performance.now(); end = 0; soon(); },
    phase(name) { phases.push([name, end = seconds()]); soon(); },
    add(name, value) {
      const points = lines.get(name) ?? [];
      if (points.length < most) points.push([end = seconds(), Number(value.toFixed(2))]);
      lines.set(name, points);
      soon();
    },
  };
}
