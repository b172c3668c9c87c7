// Shows the numbers under the pointer, or under the keyboard's focus, in plots drawn by crates/report/src/plot/svg.rs,
// whose documentation says what the attributes mean. Pages read the same without it.
(() => {
  "use strict";
  const NS = "http://www.w3.org/2000/svg";
  const tip = document.createElement("div");
  tip.setAttribute("role", "status");
  tip.style.cssText = "position:absolute;z-index:9;pointer-events:none;display:none;max-width:20rem;padding:.35em .6em;" +
    "font:12px/1.45 system-ui,sans-serif;overflow-wrap:anywhere;background:var(--paper,#fff);color:var(--ink,#1f2328);" +
    "border:1px solid var(--muted,#59616b);border-radius:4px";
  const ring = document.createElementNS(NS, "circle");
  for (const [name, value] of Object.entries({ r: 7, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "pointer-events": "none" })) {
    ring.setAttribute(name, value);
  }

  const inUnit = (value, unit) => {
    const prefixes = unit.split(",").map((prefix) => prefix.split(" "));
    const [factor, symbol] = prefixes.find(([factor]) => Math.abs(value) >= factor) || prefixes.at(-1);
    return `${+(value / factor).toPrecision(4)} ${symbol}`.trim();
  };

  // What a pixel on an axis means, as text.
  const axis = (svg, name) => {
    const data = (part) => svg.getAttribute(`data-${name}${part}`);
    const [scale, ...ends] = data("").split(" ");
    const [from, to, start, end] = ends.map(Number);
    const odds = (share) => Math.log(share / (1 - share));
    const number = (share) => {
      if (scale === "log") return from * (to / from) ** share;
      if (scale !== "nines") return from + (to - from) * share;
      return 1 / (1 + Math.exp(-(odds(from) + (odds(to) - odds(from)) * share)));
    };
    const names = (data("-names") || "").split("\n");
    const text = (pixel) => {
      const value = number((pixel - start) / (end - start));
      if (scale === "names") return names[Math.round(value)] || "";
      if (scale === "nines") {
        const digits = 1 - Math.floor(Math.log10(100 * Math.min(value, 1 - value)));
        return `p${+(value * 100).toFixed(Math.min(Math.max(digits, 0), 12))}`;
      }
      return inUnit(data("-whole") === null ? value : Math.round(value), data("-unit"));
    };
    return { text, isNames: scale === "names", label: data("-label"), names, start, end };
  };

  // The runs of a path: the points at which each begins and its strokes end.
  const runs = (path) => {
    const all = [];
    let [x, y] = [0, 0];
    for (const [, command, rest] of path.getAttribute("d").matchAll(/([Mmlhv])([^a-zA-Z]*)/g)) {
      const [a, b] = rest.match(/-?\d*\.?\d+/g).map(Number);
      if (command === "M") [x, y] = [a, b];
      else [x, y] = [x + (command === "v" ? 0 : a), y + (command === "v" ? a : command === "h" ? 0 : b)];
      if (command === "M" || command === "m") {
        // Runs that are closed begin where the last began.
        if (command === "m" && path.dataset.m === "band") [x, y] = [all.at(-1)[0][0] + a, all.at(-1)[0][1] + b];
        all.push([]);
      }
      all.at(-1).push([x, y]);
    }
    return all;
  };

  // All marks of a plot in groups, along which the left and right keys go: {x, y, text: lines}.
  const read = (svg) => {
    const [x, y] = [axis(svg, "x"), axis(svg, "y")];
    const groups = new Map();
    const add = (group, mark) => groups.set(group, [...(groups.get(group) || []), mark]);
    const bands = [];
    for (const path of svg.querySelectorAll("[data-m=band]")) {
      const series = path.closest("[data-series]").dataset.series;
      for (const run of runs(path)) {
        run.slice(0, run.length / 2).forEach(([at, high], index) => bands.push({ series, at, high, low: run.at(-1 - index)[1] }));
      }
    }
    const labelled = (axis, text) => (axis.label ? `${axis.label}: ${text}` : text);
    const point = (series, px, py) => {
      const band = bands.find((band) => band.series === series && Math.abs(band.at - px) < 0.6);
      const isAt = (a, b) => Math.abs(a - b) < 0.06;
      let range = "";
      if (band) {
        const [low, high] = [!isAt(band.low, y.start), !isAt(band.high, y.end)];
        if (low && high) range = ` (${y.text(band.low)} to ${y.text(band.high)})`;
        else if (low) range = ` (at least ${y.text(band.low)})`;
        else if (high) range = ` (at most ${y.text(band.high)})`;
      }
      return { x: px, y: py, text: [series, labelled(x, x.text(px)), labelled(y, y.text(py)) + range] };
    };
    const collected = new Map();
    for (const marks of svg.querySelectorAll("[data-m]")) {
      const kind = marks.dataset.m;
      const series = marks.closest("[data-series]")?.dataset.series;
      let points = [];
      if (kind === "line") points = runs(marks).flat();
      if (kind === "step") points = runs(marks).flatMap((run) => run.filter((_, index) => index % 2 === 0));
      if (kind === "dots" && marks.tagName === "path") points = runs(marks).map((run) => run[0]);
      if (kind === "dots" && marks.tagName === "g" && !marks.parentNode.querySelector("[data-m=line]")) {
        points = [...marks.children].map((use) => [+use.getAttribute("x"), +use.getAttribute("y")]);
      }
      if (points.length) collected.set(series, [...(collected.get(series) || []), ...points]);
      if (kind === "interval") {
        const [px, py] = marks.dataset.at.split(" ").map(Number);
        add(`row ${py}`, { x: px, y: py, text: [series, y.isNames ? y.text(py) : "", labelled(x, marks.dataset.text)] });
      }
      if (kind === "cells") {
        const [columns, rows] = [x.names.length, y.names.length];
        marks.dataset.v.split(",").forEach((value, index) => {
          const [column, row] = [index % columns, Math.floor(index / columns)];
          const px = x.start + ((column + 0.5) / columns) * (x.end - x.start);
          const py = y.end + ((row + 0.5) / rows) * (y.start - y.end);
          const shown = value === "" ? "-" : inUnit(+value, marks.dataset.vUnit);
          add(`row ${row}`, { x: px, y: py, text: [labelled(y, y.names[row]), labelled(x, x.names[column]), `${marks.dataset.vLabel}: ${shown}`] });
        });
      }
    }
    for (const [series, points] of collected) groups.set(`series ${series}`, points.map(([px, py]) => point(series, px, py)));
    const sorted = [...groups.values()].map((group) => group.sort((a, b) => a.x - b.x));
    return y.isNames ? sorted.sort((a, b) => a[0].y - b[0].y) : sorted;
  };

  const hide = () => {
    tip.style.display = "none";
    ring.remove();
  };
  const show = (svg, mark) => {
    tip.replaceChildren(...mark.text.filter(Boolean).map((line, index) => {
      const row = document.createElement("div");
      row.textContent = line;
      if (index === 0) row.style.fontWeight = 600;
      return row;
    }));
    ring.setAttribute("cx", mark.x);
    ring.setAttribute("cy", mark.y);
    svg.append(ring);
    tip.style.display = "block";
    const at = new DOMPoint(mark.x, mark.y).matrixTransform(svg.getScreenCTM());
    const [width, room] = [tip.offsetWidth, document.documentElement.clientWidth];
    const left = at.x + 14 + width < room ? at.x + 14 : Math.max(4, at.x - 14 - width);
    tip.style.left = `${left + scrollX}px`;
    tip.style.top = `${Math.max(4, at.y - tip.offsetHeight - 10) + scrollY}px`;
  };
  const nearest = (marks, away) => marks.reduce((best, mark) => (away(mark) < away(best) ? mark : best), marks[0]);

  const watch = (svg) => {
    let groups, current;
    const known = () => (groups ||= read(svg));
    const title = svg.querySelector("title");
    // Or browsers show the title wherever the pointer rests.
    svg.setAttribute("aria-label", title.textContent);
    svg.setAttribute("aria-describedby", svg.querySelector("desc").id);
    svg.removeAttribute("aria-labelledby");
    title.remove();
    svg.tabIndex = 0;
    const point = (event) => {
      const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      const away = (mark) => Math.hypot(mark.x - at.x, mark.y - at.y);
      const mark = nearest(known().flat(), away);
      if (!mark || away(mark) > 60) return hide();
      current = [groups.findIndex((group) => group.includes(mark)), mark];
      show(svg, mark);
    };
    svg.addEventListener("pointermove", point);
    svg.addEventListener("pointerdown", point);
    svg.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hide());
    svg.addEventListener("blur", hide);
    svg.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return hide();
      const [across, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] || [];
      if (across === undefined || !known().length) return;
      event.preventDefault();
      let [row, mark] = current || [0, null];
      if (mark && across) mark = groups[row][groups[row].indexOf(mark) + across] || mark;
      else if (mark) {
        row = Math.min(Math.max(row + down, 0), groups.length - 1);
        const from = mark;
        mark = nearest(groups[row], (other) => Math.abs(other.x - from.x));
      } else mark = groups[0][0];
      current = [row, mark];
      show(svg, mark);
    });
  };

  document.body.append(tip);
  document.querySelectorAll("svg[data-x]").forEach(watch);
})();
