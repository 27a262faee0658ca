"use strict";
// Draws the charts of the page from its data; see archgym/charts/description.py for what they hold.
(function () {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const root = document.documentElement;
  const hidden = new Set();
  const drawn = new Map(); // element of a plot -> its chart

  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const palette = () => data.colours[root.dataset.theme === "dark" ? "dark" : "light"];
  const colour = (searcher) => {
    return searcher < 0 ? css("--faint") : palette()[data.looks[searcher][0]];
  };
  const dash = (searcher) =>
    searcher < 0 ? "dash" : data.dashes[data.looks[searcher][1] % data.dashes.length];
  const faded = (hex, share) => {
    const n = parseInt(hex.slice(1), 16);
    return `rgba(${n >> 16}, ${(n >> 8) & 255}, ${n & 255}, ${share})`;
  };
  // Plotly reads a little HTML in its texts: names are to stay what they are.
  const plain = (text) =>
    String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/\$/g, "&#36;");
  const short = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);
  // Breaks between words, and within long names behind an underscore; never within a unit.
  const wrapped = (text, width) => {
    const whole = text.replace(/\*/g, " \u00d7 ").replace(/\[[^\]]*\]/g, (unit) => unit.replace(/ /g, "\u00a0"));
    const lines = [""];
    for (const word of whole.split(" ")) {
      const parts = word.length > width ? word.split(/(?<=_)/) : [word];
      parts.forEach((part, i) => {
        const space = i || !lines[lines.length - 1] ? "" : " ";
        if (lines[lines.length - 1] && lines[lines.length - 1].length + space.length + part.length > width) lines.push(part);
        else lines[lines.length - 1] += space + part;
      });
    }
    return lines.map(plain).join("<br>");
  };
  const digits = (value) => {
    const size = Math.abs(value);
    if (size && (size < 1e-3 || size >= 1e6)) {
      const power = Math.floor(Math.log10(size) + 1e-9), head = +(value / 10 ** power).toPrecision(3);
      return `${head === 1 ? "" : `${head}\u00d7`}10<sup>${power}</sup>`;
    }
    return value.toLocaleString("en", { maximumSignificantDigits: 4 });
  };
  const logTicks = (low, high) => {
    for (const heads of [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 6, 8]]) {
      const ticks = [];
      for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); power++) {
        for (const head of heads) ticks.push(+(head * 10 ** power).toPrecision(3));
      }
      const inside = ticks.filter((t) => t >= low && t <= high);
      if (inside.length >= 4 || heads.length === 8) return inside;
    }
    return [];
  };
  const ends = (chart, which) => {
    const values = chart.series.flatMap((one) => [...(one[which] || []), ...(which === "y" ? [...(one.low || []), ...(one.high || [])] : [])]).filter((v) => v !== null && v > 0);
    return [Math.min(...values), Math.max(...values)];
  };
  const shown = (chart) => chart.series.filter((one) => !hidden.has(one.searcher));

  function axis(chart, which) {
    const one = chart[which];
    const made = {
      title: { text: wrapped(one.label, 34), standoff: 8 }, gridcolor: css("--grid"), zeroline: false,
      linecolor: css("--line"), automargin: true, exponentformat: "power", separatethousands: true,
    };
    if (one.log) {
      made.type = "log";
      const [low, high] = one.low !== undefined && one.high !== undefined ? [one.low, one.high] : ends(chart, which);
      const ticks = one.percent && high / low > 100 ? logTicks(low, high).filter((t) => Math.log10(t) % 1 === 0) : logTicks(low, high);
      made.tickvals = ticks;
      made.ticktext = ticks.map((t) => (one.percent ? `${digits(t * 100)} %` : digits(t)));
    } else if (one.percent) {
      made.tickformat = ".0%";
      if (one.high !== undefined && one.high <= 1.05) made.dtick = 0.2;
    } else if (one.high !== undefined && Math.abs(one.high) < 1e6 && Math.abs(one.high) > 1e-3) {
      made.exponentformat = "none";
    }
    if (one.low !== undefined && one.high !== undefined) {
      made.range = one.log ? [Math.log10(one.low), Math.log10(one.high)] : [one.low, one.high];
    } else if (one.low !== undefined && !one.log) {
      made.rangemode = "tozero";
    }
    return made;
  }

  function layout(chart) {
    return {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: css("--text"), family: getComputedStyle(document.body).fontFamily, size: 12.5 },
      margin: { l: 60, r: 14, t: 26, b: 46 }, showlegend: false, hovermode: "closest",
      hoverlabel: { bgcolor: css("--panel"), bordercolor: css("--line"), font: { color: css("--text") } },
      xaxis: axis(chart, "x"), yaxis: axis(chart, "y"),
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--line"), activecolor: css("--text") },
    };
  }

  function addLevels(chart, made) {
    made.shapes = chart.levels.map((one) => ({
      type: "line", xref: "paper", x0: 0, x1: 1, y0: one.value, y1: one.value,
      line: { color: css("--faint"), width: 1.2, dash: one.dotted ? "dot" : "dash" },
    }));
    made.annotations = chart.levels.map((one) => ({
      text: plain(one.label), xref: "paper", x: 1, xanchor: "right", yanchor: "bottom", showarrow: false,
      y: chart.y.log ? Math.log10(one.value) : one.value, font: { color: css("--faint"), size: 11 },
    }));
  }

  function lines(chart) {
    const traces = [];
    for (const one of shown(chart)) {
      const at = one.x.map((_, i) => i).filter((i) => one.y[i] !== null);
      const band = at.filter((i) => one.low && one.low[i] !== null && one.high[i] !== null);
      if (band.length > 1 && band.some((i) => one.low[i] !== one.high[i])) {
        const xs = [], lows = [], highs = [];
        band.forEach((i, k) => { // steps, as the line has them
          if (k) { xs.push(one.x[i]); lows.push(one.low[band[k - 1]]); highs.push(one.high[band[k - 1]]); }
          xs.push(one.x[i]); lows.push(one.low[i]); highs.push(one.high[i]);
        });
        traces.push({
          x: xs.concat(xs.slice().reverse()), y: highs.concat(lows.slice().reverse()), fill: "toself",
          fillcolor: faded(colour(one.searcher), chart.series.length > 4 ? 0.09 : 0.15), line: { width: 0 }, mode: "lines", hoverinfo: "skip", type: "scatter",
        });
      }
      traces.push({
        x: at.map((i) => one.x[i]), y: at.map((i) => one.y[i]), type: "scatter", mode: at.length > 1 ? "lines" : "markers",
        name: plain(short(one.name, 40)), line: { color: colour(one.searcher), dash: dash(one.searcher), width: 2, shape: "hv" },
        marker: { color: colour(one.searcher) },
        hovertemplate: chart.y.percent ? "%{y:.2%}" : "%{y:.5g}",
      });
    }
    const made = layout(chart);
    made.hovermode = "x unified";
    addLevels(chart, made);
    return [traces, made];
  }

  function points(chart) {
    const traces = shown(chart).map((one) => ({
      x: one.x || [], y: one.y || [], type: "scatter", mode: "markers", name: plain(short(one.name, 40)),
      marker: { color: colour(one.searcher), size: 7, symbol: one.searcher % 8, opacity: 0.85 },
      hovertemplate: "%{x:.5g}, %{y:.5g}",
    }));
    return [traces, layout(chart)];
  }

  function boxes(chart) {
    const traces = [], all = shown(chart);
    all.forEach((one, i) => {
      const c = colour(one.searcher);
      if (one.y && one.y[2] !== null) {
        traces.push({
          type: "box", orientation: "v", x: [i], lowerfence: [one.y[0]], q1: [one.y[1]], median: [one.y[2]], q3: [one.y[3]], upperfence: [one.y[4]],
          name: plain(short(one.name, 40)), line: { color: c, width: 1.8 }, fillcolor: faded(c, 0.2), width: 0.5, boxpoints: false,
        });
      }
      const ys = one.points || [];
      traces.push({
        type: "scatter", mode: "markers", y: ys, x: ys.map((_, k) => i - 0.2 + 0.4 * ((k * 0.618034) % 1)), name: plain(short(one.name, 40)),
        marker: { color: c, size: 4, opacity: 0.45 }, hovertemplate: "%{y:.5g}",
      });
    });
    const made = layout(chart);
    made.xaxis = {
      ...made.xaxis, tickvals: all.map((_, i) => i), ticktext: all.map((one) => wrapped(short(one.name, 44), 16)), range: [-0.6, all.length - 0.4],
      showgrid: false, title: { text: "" },
    };
    addLevels(chart, made);
    return [traces, made];
  }

  function categories(chart, made, names) {
    made.yaxis = {
      ...made.yaxis, tickvals: names.map((_, i) => i), ticktext: names.map((name) => plain(short(name, 42))), range: [names.length - 0.4, -0.6], showgrid: false,
    };
  }

  function bars(chart) {
    const made = layout(chart);
    categories(chart, made, chart.categories);
    const traces = chart.series.map((one) => ({
      type: "bar", orientation: "h", x: one.x, y: one.x.map((_, i) => i), marker: { color: palette()[0] }, width: 0.65,
      error_x: { type: "data", array: one.high.map((v, i) => v - one.x[i]), color: css("--faint"), thickness: 1.2, width: 3 },
      hovertemplate: "%{x:.3g}<extra></extra>",
    }));
    return [traces, made];
  }

  function stack(chart) {
    const made = layout(chart);
    categories(chart, made, chart.categories);
    Object.assign(made, { barmode: "stack", showlegend: true, legend: { orientation: "h", y: 1.02, yanchor: "bottom", x: 0, traceorder: "normal" } });
    made.margin = { ...made.margin, t: 56 };
    const traces = chart.series.map((one) => ({
      type: "bar", orientation: "h", x: one.x, y: one.x.map((_, i) => i), name: plain(one.name), marker: { color: data.parts[one.name] || css("--faint") }, width: 0.65,
      hovertemplate: "%{x:.1%}",
    }));
    return [traces, made];
  }

  function intervals(chart) {
    const all = shown(chart), made = layout(chart);
    categories(chart, made, all.map((one) => one.name));
    const traces = all.map((one, i) => ({
      type: "scatter", mode: "markers", x: one.x, y: [i], name: plain(short(one.name, 40)), marker: { color: colour(one.searcher), size: 11 },
      error_x: { type: "data", symmetric: false, array: [one.high[0] - one.x[0]], arrayminus: [one.x[0] - one.low[0]], color: colour(one.searcher), thickness: 2, width: 6 },
      hovertemplate: "%{x:.2f}",
    }));
    return [traces, made];
  }

  function parallel(chart) {
    const cost = chart.series[0].y, made = layout(chart);
    delete made.xaxis;
    delete made.yaxis;
    const dark = root.dataset.theme === "dark";
    const dimensions = chart.dimensions.map((one) => ({
      label: wrapped(short(one.label, 60), 15), values: one.values,
      ...(one.ticks ? { tickvals: one.ticks[0], ticktext: one.ticks[1].map((t) => plain(short(t, 18))) } : { tickformat: ".4~g" }),
    }));
    const most = Math.max(...dimensions.map((one) => one.label.split("<br>").length));
    made.margin = { l: 80, r: 70, t: 34, b: 25 + 15 * Math.max(3, most) };
    const scale = [[0, dark ? "#ffd166" : "#08306b"], [0.25, dark ? "#b5894a" : "#4c8cc0"], [1, dark ? "#3a3f45" : "#dbe4ec"]];
    const sorted = cost.slice().sort((a, b) => a - b);
    return [[{
      type: "parcoords", dimensions, labelside: "bottom", labelfont: { color: css("--text"), size: 11 }, tickfont: { color: css("--text"), size: 10 },
      rangefont: { color: "rgba(0,0,0,0)", size: 1 },
      line: { color: cost, colorscale: scale, cmin: sorted[0], cmax: sorted[Math.floor(0.9 * (sorted.length - 1))], showscale: false },
      unselected: { line: { color: css("--line"), opacity: 0.1 } },
    }], made];
  }

  const makers = { lines, points, boxes, bars, stack, intervals, parallel };
  const config = {
    displaylogo: false, responsive: true, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
  };

  function draw(element) {
    const chart = data.charts[element.closest("figure").dataset.chart];
    const [traces, made] = makers[chart.kind](chart);
    if (["bars", "stack", "intervals"].includes(chart.kind)) {
      element.style.height = `${Math.max(150, 122 + 27 * (made.yaxis.tickvals || []).length)}px`;
    }
    drawn.set(element, chart);
    return Plotly.react(element, traces, made, { ...config, toImageButtonOptions: { format: "svg", filename: chart.key } })
      .catch((error) => { element.textContent = `This chart cannot be drawn here: ${error}`; });
  }

  const all = (elements) =>
    Promise.all(elements.filter((one) => one.offsetParent !== null).map(draw)).then((some) => some.length);
  const redraw = () => all([...drawn.keys()]);
  const watcher = new IntersectionObserver(
    (entries) => entries.forEach((one) => { if (one.isIntersecting && !drawn.has(one.target)) draw(one.target); }),
    { rootMargin: "500px" },
  );

  function paintSwatches() {
    document.querySelectorAll(".swatch").forEach((one) => {
      const searcher = Number(one.dataset.searcher);
      one.style.borderTopColor = colour(searcher);
      one.style.borderTopStyle = { solid: "solid", dash: "dashed", dot: "dotted", dashdot: "double" }[dash(searcher)];
    });
  }

  function setTheme(theme) {
    root.dataset.theme = theme;
    paintSwatches();
    drawn.forEach((_, element) => { if (element.offsetParent === null) drawn.delete(element); });
    return redraw();
  }

  function showProblem(number) {
    document.querySelectorAll(".problem").forEach((one) => { one.hidden = one.dataset.problem !== String(number); });
    const select = document.getElementById("problem");
    if (select) select.value = String(number);
    document.querySelectorAll(".links a[data-section]").forEach((link) => {
      link.hidden = !document.querySelector(`.problem:not([hidden]) section.${CSS.escape(link.dataset.section)}`);
    });
    return redraw();
  }

  document.getElementById("theme").addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  document.getElementById("legend").addEventListener("click", (event) => {
    const chip = event.target.closest(".chip");
    if (!chip) return;
    const searcher = Number(chip.dataset.searcher);
    if (hidden.has(searcher)) hidden.delete(searcher); else hidden.add(searcher);
    chip.setAttribute("aria-pressed", String(!hidden.has(searcher)));
    drawn.forEach((_, element) => { if (element.offsetParent === null) drawn.delete(element); });
    redraw();
  });
  const select = document.getElementById("problem");
  if (select) select.addEventListener("change", () => showProblem(Number(select.value)));
  document.querySelectorAll(".links a[data-section]").forEach((link) => link.addEventListener("click", (event) => {
    const section = document.querySelector(`.problem:not([hidden]) section.${CSS.escape(link.dataset.section)}`);
    if (section) { event.preventDefault(); section.scrollIntoView(); }
  }));
  document.querySelectorAll(".copy").forEach((button) => button.addEventListener("click", async () => {
    const code = button.previousElementSibling;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }));

  setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  showProblem(0);
  document.querySelectorAll(".plot").forEach((one) => watcher.observe(one));
  // For whoever prints or checks the page: draws all that is on it, also what is far below.
  window.archgymReport = {
    drawAll: () => all([...document.querySelectorAll(".plot")]),
    setTheme, showProblem,
  };
})();
