// Shows the numbers under the pointer or the keyboard's focus. plot/svg.rs says what the attributes mean.
(() => {
  "use strict";
  const tip = document.createElement("div");
  tip.role = "status";
  tip.style.cssText = `position:absolute;z-index:9;pointer-events:none;max-width:20rem;padding:0 8px;font:12px/1.5
    system-ui;overflow-wrap:anywhere;outline:1px solid;background:var(--paper);color:var(--ink)`;
  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  ring.style.cssText = "r:7px;fill:none;stroke:currentColor;stroke-width:1.5;pointer-events:none";

  const inUnit = (value, unit) => {
    const prefixes = unit.split(",").map((prefix) => prefix.split(" "));
    const [factor, symbol] = prefixes.find(([least]) => Math.abs(value) >= least) || prefixes.at(-1);
    return `${+(value / factor).toPrecision(4)} ${symbol}`.trim();
  };

  // What the pixels of an axis mean.
  const axis = (svg, name) => {
    const data = (part) => svg.getAttribute(`data-${name}${part}`);
    const [scale, ...ends] = data("").split(" ");
    const [from, to, start, end] = ends.map(Number);
    // No more digits than pixels tell apart.
    const step = 10 ** Math.ceil(Math.log10(Math.abs((to - from) / (end - start) / 20)));
    const names = data("-names")?.split("\n");
    const write = (px) => {
      const place = from + (to - from) * (px - start) / (end - start);
      if (names) return names[Math.round(place)];
      if (scale === "nines") return `p${+(100 / (1 + 10 ** -place)).toPrecision(5)}`;
      const number = scale === "log" ? 10 ** place : place;
      const value = scale === "log" ? +number.toPrecision(3) : Math.round(number / step) * step;
      return inUnit(data("-whole") === null ? value : Math.round(number), data("-unit"));
    };
    const label = data("-label") && data("-label") + ": ";
    return { names, start, end, label, write };
  };

  // The vertices of each run of a path.
  const runs = (path) => {
    const all = [];
    let [x, y] = [0, 0];
    for (const [, command, rest] of path.getAttribute("d").matchAll(/([Mmlhvz])([^a-zA-Z]*)/g)) {
      const [a, b] = (rest.match(/-?\d*\.?\d+/g) || []).map(Number);
      if (/m/i.test(command)) all.push([]);
      [x, y] = command === "z" ? all.at(-1)[0] : command === "v" ? [x, y + a] : [x + a, y + (b || 0)];
      if (command !== "z") all.at(-1).push([x, y]);
    }
    return all;
  };

  // All marks, in rows along which the left and right keys go.
  const read = (svg) => {
    const [x, y] = [axis(svg, "x"), axis(svg, "y")];
    const [rows, bands] = [{}, {}];
    const add = (row, at, ...text) => (rows["row " + row] ||= []).push({ x: at[0], y: at[1], text });
    const key = (series, px) => `${px.toFixed(1)} ${series}`;
    const point = (series, at) => {
      const band = bands[key(series, at[0])];
      const [low, high] = band ? band.map((px, i) => Math.abs(px - [y.start, y.end][i]) > 0.06 && y.write(px)) : [];
      const range = low && high ? ` (${low} to ${high})` : low ? ` (at least ${low})` : high ? ` (at most ${high})` : "";
      add(series, at, series, x.label + x.write(at[0]), y.label + y.write(at[1]) + range);
    };
    const readers = {
      band: (path, series) => runs(path).forEach((run) => run.slice(0, run.length / 2).forEach(([px, high], i) =>
        bands[key(series, px)] = [run.at(-1 - i)[1], high])),
      line: (path, series) => runs(path).flat().forEach((at) => point(series, at)),
      step: (path, series) => runs(path).forEach((run) => run.forEach((at, i) => i % 2 || point(series, at))),
      dots: (path, series) => runs(path).forEach(([at]) => point(series, at)),
      marks: (g, series) => [...g.children].forEach((use) => point(series, ["x", "y"].map((side) => +use.getAttribute(side)))),
      interval: ({ dataset }, series) => {
        const at = dataset.at.split(" ").map(Number);
        add(at[1], at, series, y.names ? y.write(at[1]) : "", x.label + dataset.text);
      },
      cells: ({ dataset }) => dataset.v.split(",").forEach((value, i) => {
        const [across, down] = [x.names.length, y.names.length];
        const row = Math.floor(i / across);
        const at = [x.start + (x.end - x.start) * (i % across + 0.5) / across, y.end + (y.start - y.end) * (row + 0.5) / down];
        add(row, at, x.label + x.names[i % across], y.label + y.names[row], `${dataset.vLabel}: ${value && inUnit(+value, dataset.vUnit)}`);
      }),
    };
    for (const [kind, reader] of Object.entries(readers)) {
      svg.querySelectorAll(`[data-m=${kind}]`).forEach((marks) => reader(marks, marks.closest("[data-series]")?.dataset.series));
    }
    const sorted = Object.values(rows).map((row) => row.sort((a, b) => a.x - b.x));
    return y.names ? sorted.sort((a, b) => a[0].y - b[0].y) : sorted;
  };

  const hide = () => [tip, ring].forEach((shown) => shown.remove());
  const nearest = (marks, away) => marks.reduce((best, mark) => (away(mark) < away(best) ? mark : best), marks[0]);

  const watch = (svg) => {
    let [rows, row, mark] = [null, 0, null];
    const show = () => {
      tip.replaceChildren(...mark.text.filter(Boolean).flatMap((line) => [line, document.createElement("br")]));
      ring.setAttribute("cx", mark.x);
      ring.setAttribute("cy", mark.y);
      svg.append(ring);
      document.body.append(tip);
      const at = new DOMPoint(mark.x, mark.y).matrixTransform(svg.getScreenCTM());
      const most = document.documentElement.clientWidth - tip.offsetWidth - 4;
      tip.style.left = `${scrollX + Math.max(4, Math.min(at.x + 12, most))}px`;
      tip.style.top = `${scrollY + Math.max(4, at.y - tip.offsetHeight - 12)}px`;
    };
    const point = (event) => {
      rows ||= read(svg);
      const at = new DOMPoint(event.x, event.y).matrixTransform(svg.getScreenCTM().inverse());
      const away = (other) => Math.hypot(other.x - at.x, other.y - at.y);
      const found = nearest(rows.flat(), away);
      if (!found || away(found) > 60) return hide();
      [row, mark] = [rows.findIndex((marks) => marks.includes(found)), found];
      show();
    };
    // Browsers would show the title wherever the pointer rests.
    const title = svg.querySelector("title");
    svg.setAttribute("aria-label", `${title.textContent}. ${title.nextSibling.textContent}`);
    svg.setAttribute("aria-labelledby", "");
    title.remove();
    svg.tabIndex = 0;
    svg.onpointermove = svg.onpointerdown = point;
    svg.onpointerleave = (event) => event.pointerType === "touch" || hide();
    svg.onblur = hide;
    svg.onkeydown = (event) => {
      if (event.key === "Escape") return hide();
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      rows ||= read(svg);
      if (!step || !rows.length) return;
      event.preventDefault();
      const from = mark || rows[0][0];
      if (mark) row = Math.min(Math.max(row + step[1], 0), rows.length - 1);
      mark = (step[0] && mark && rows[row][rows[row].indexOf(mark) + step[0]]) || nearest(rows[row], (other) => Math.abs(other.x - from.x));
      show();
    };
  };
  document.querySelectorAll("svg[data-x]").forEach(watch);
})();
