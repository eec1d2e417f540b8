// Draws the report's charts from the options in the page. Nothing is fetched.
"use strict";
(() => {
  const drawings = JSON.parse(document.getElementById("drawings").textContent);
  const theme = matchMedia("(prefers-color-scheme: dark)");
  const number = new Intl.NumberFormat("en", { maximumFractionDigits: 2 });

  // coloured replaces var(--name) by the theme's value.
  function coloured(value, style) {
    if (typeof value === "string") {
      const name = /^var\((--\w+)\)$/.exec(value);
      return name ? style.getPropertyValue(name[1]).trim() : value;
    }
    if (Array.isArray(value)) return value.map((v) => coloured(v, style));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, style)]));
    }
    return value;
  }

  // themed adds what is the same for every chart: the page's type and colours.
  function themed(option, width) {
    const style = getComputedStyle(document.documentElement);
    const at = (name) => style.getPropertyValue(name).trim();
    const o = coloured(option, style);
    const muted = at("--muted"), line = at("--line");
    o.textStyle = { fontFamily: getComputedStyle(document.body).fontFamily, color: at("--ink") };
    o.backgroundColor = "transparent";
    o.tooltip = Object.assign({}, o.tooltip, {
      confine: true, extraCssText: "max-width: min(84vw, 420px); white-space: normal; overflow-wrap: anywhere; font-variant-numeric: tabular-nums",
      backgroundColor: at("--page"), borderColor: line, textStyle: { color: at("--ink"), fontSize: 12 },
      valueFormatter: (v) => (Array.isArray(v) ? number.format(v[v.length - 1]) : typeof v === "number" ? number.format(v) : "none"),
    });
    if (o.legend) {
      o.legend.textStyle = { color: muted, fontSize: 12 };
      o.legend.inactiveColor = at("--off");
      o.legend.pageTextStyle = { color: muted };
      o.legend.pageIconColor = muted;
      o.legend.pageIconInactiveColor = line;
    }
    for (const axis of [].concat(o.xAxis || [], o.yAxis || [])) {
      axis.axisLabel = Object.assign({}, axis.axisLabel, { color: muted, fontSize: 12, hideOverlap: true });
      if (axis.name === "seconds") axis.axisLabel.showMaxLabel = false; // it is where the launch ended, not a round number
      axis.axisLine = { lineStyle: { color: line } };
      axis.axisTick = { show: false };
      axis.splitLine = { show: axis.type === "value" && axis.name !== "seconds", lineStyle: { color: line } };
      axis.nameTextStyle = { color: muted, fontSize: 12, align: axis.nameLocation === "middle" ? "center" : "left" };
      if (axis.type === "category") {
        axis.axisLabel.hideOverlap = false;
        axis.axisLabel.interval = 0;
        axis.axisLabel.width = Math.max(48, (width - 60) / axis.data.length - 8);
        axis.axisLabel.overflow = "break";
        axis.axisLabel.lineHeight = 16;
        axis.axisLabel.color = at("--ink");
      }
    }
    if (o.series[0].type === "line") o.series[0].z = 3; // the total lies over its parts
    return o;
  }

  for (const figure of document.querySelectorAll("[data-chart]")) {
    const list = drawings[figure.dataset.chart];
    const plot = figure.querySelector(".plot");
    const choice = figure.querySelector("select");
    const chart = echarts.init(plot, null, { renderer: "svg" });
    let width = 0;
    const draw = () => {
      const chosen = list[choice ? Number(choice.value) : Number(figure.dataset.chosen)];
      width = plot.clientWidth;
      chart.setOption(themed(chosen.options, width), true);
      figure.querySelector(".caption").textContent = chosen.caption;
    };
    draw();
    if (choice) choice.addEventListener("change", draw);
    theme.addEventListener("change", draw);
    new ResizeObserver(() => {
      if (plot.clientWidth === width) return;
      chart.resize();
      draw();
    }).observe(plot);
  }
})();
