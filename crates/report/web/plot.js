// Shows the numbers at the pointer or the keyboard focus. plot/svg.rs documents the attributes.
(() => {
  const tip = document.createElement("div");
  tip.setAttribute("role", "status");
  tip.style.cssText = `position:absolute;z-index:9;pointer-events:none;max-width:20rem;padding:0 8px;outline:1px solid;
    font:12px/1.5 system-ui;overflow-wrap:anywhere;background:var(--paper);color:var(--ink)`;
  const ring = document.createElementNS("http://www.w3.org/2000/svg", "circle");
  ring.style.cssText = "r:7px;fill:none;stroke:currentColor;stroke-width:1.5;pointer-events:none";

  const inUnit = (value, unit, digits = 4) => {
    const prefixes = (unit || "1 ").split(",").map((prefix) => prefix.split(" "));
    const [factor, symbol] = prefixes.find(([least]) => Math.abs(value) >= least) || prefixes.pop();
    return `${+(value / factor).toPrecision(digits)} ${symbol}`.trim();
  };

  // Converts pixels of an axis to values.
  const axis = (data, ticks, tells) => {
    const [scale, ...ends] = data("").split(" ");
    const [from, to, start, end] = ends.map(Number);
    // The digits that pixels can distinguish.
    const step = 10 ** Math.ceil(Math.log10(Math.abs((to - from) / (end - start) / tells)));
    const named = (text) => (text.querySelector("title") || text).textContent;
    const names = data("-names") ? data("-names").split("\n") : scale === "names" && [...ticks].map(named);
    const write = (px) => {
      const place = from + (to - from) * (px - start) / (end - start);
      if (names) return names[Math.round(place)];
      if (scale === "logit") {
        const percents = +(100 / (1 + 10 ** -place)).toPrecision(5);
        return data("-unit") ? `${percents} %` : `p${percents}`;
      }
      const number = scale === "log" ? 10 ** place : place;
      if (data("-whole") !== null) return inUnit(Math.round(number), data("-unit"), 12);
      return scale === "log" ? inUnit(number, data("-unit"), 3) : inUnit(Math.round(number / step) * step, data("-unit"));
    };
    const label = data("-label") ? data("-label") + ": " : "";
    return { names, start, end, label, write, text: (px) => label + write(px) };
  };

  // The vertices of each run of a path.
  const runs = (path) => {
    const all = [];
    let run, x = 0, y = 0;
    for (const [, command, rest] of path.getAttribute("d").matchAll(/([Mmlhvz])([^a-zA-Z]*)/g)) {
      const [a, b] = (rest.match(/-?\d*\.?\d+/g) || []).map(Number);
      if (/m/i.test(command)) all.push((run = []));
      [x, y] = command === "z" ? run[0] : command === "v" ? [x, y + a] : [x + a, y + (b || 0)];
      if (command !== "z") run.push([x, y]);
    }
    return all;
  };

  // All marks in rows; the left and right keys move along a row.
  const read = (svg) => {
    const tells = svg.viewBox.baseVal.width > 400 ? 20 : 4;
    const [x, y] = ["x", "y"].map((name) =>
      axis((part) => svg.getAttribute(`data-${name}${part}`), svg.querySelectorAll(`g.${name} text`), tells));
    const rows = {}, bands = {};
    const add = (row, at, ...text) => (rows["row " + row] = rows["row " + row] || []).push({ x: at[0], y: at[1], text });
    const key = (series, px) => px.toFixed(1) + series;
    const point = (series) => (at) => {
      const ends = (bands[key(series, at[0])] || []).map((px, i) => Math.abs(px - [y.start, y.end][i]) > 0.3 && y.write(px));
      const range = ends[0] && ends[1] ? ` (${ends.join(" to ")})` : ends[0] ? ` (at least ${ends[0]})` : ends[1] ? ` (at most ${ends[1]})` : "";
      add(series, at, series, x.text(at[0]), y.text(at[1]) + range);
    };
    const readers = {
      band: (path, series) => runs(path).forEach((run) => run.slice(0, run.length / 2).forEach(([px, high], i) => {
        bands[key(series, px)] = [run[run.length - 1 - i][1], high];
      })),
      line: (path, series) => runs(path).flat().forEach(point(series)),
      step: (path, series) => runs(path).forEach((run) => run.filter((_, i) => i % 2 === 0).forEach(point(series))),
      dots: (path, series) => runs(path).forEach((run) => point(series)(run[0])),
      marks: (path, series) => runs(path).flat().forEach(point(series)),
      interval: ({ dataset }, series) => {
        const at = dataset.at.split(" ").map(Number);
        add(at[1], at, series, y.names ? y.write(at[1]) : "", x.label + dataset.text);
      },
      cells: ({ dataset }) => dataset.v.split(",").forEach((value, i) => {
        const [columns, row] = [x.names.length, Math.floor(i / x.names.length)];
        const center = (axis, at) => axis.start + (axis.end - axis.start) * (at + 0.5) / axis.names.length;
        const at = [center(x, i % columns), center(y, y.names.length - 1 - row)];
        add(row, at, x.text(at[0]), y.text(at[1]), `${dataset.vLabel}: ${value && inUnit(value, dataset.vUnit)}`);
      }),
    };
    for (const [kind, reader] of Object.entries(readers)) {
      svg.querySelectorAll(`[data-series] > .${kind}, g.${kind}`).forEach((marks) => {
        const group = marks.closest("[data-series]");
        const key = group && svg.querySelector(`g.${group.classList[0]}:not([data-series]) text`);
        reader(marks, group && (group.dataset.series || (key ? key.textContent : "")));
      });
    }
    const sorted = Object.values(rows).map((row) => row.sort((a, b) => a.x - b.x));
    return y.names ? sorted.sort((a, b) => a[0].y - b[0].y) : sorted;
  };

  const hide = () => [tip, ring].forEach((shown) => shown.remove());
  const nearest = (marks, away) => marks.reduce((best, mark) => (away(mark) < away(best) ? mark : best), marks[0]);

  const attach = (within) => within.querySelectorAll("svg[data-x]").forEach((svg) => {
    let rows, row = 0, mark;
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
    svg.tabIndex = 0;
    svg.onpointermove = svg.onpointerdown = (event) => {
      rows = rows || read(svg);
      const at = new DOMPoint(event.x, event.y).matrixTransform(svg.getScreenCTM().inverse());
      const away = (other) => Math.hypot(other.x - at.x, other.y - at.y);
      const found = nearest(rows.flat(), away);
      if (!found || away(found) > 60) return hide();
      [row, mark] = [rows.findIndex((marks) => marks.includes(found)), found];
      show();
    };
    svg.onpointerleave = (event) => event.pointerType === "touch" || hide();
    svg.onblur = hide;
    svg.onkeydown = (event) => {
      if (event.key === "Escape") return hide();
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      rows = rows || read(svg);
      if (!step || !rows.length) return;
      event.preventDefault();
      const from = mark || rows[0][0];
      if (mark) row = Math.min(Math.max(row + step[1], 0), rows.length - 1);
      const next = mark && step[0] && rows[row][rows[row].indexOf(mark) + step[0]];
      mark = next || nearest(rows[row], (other) => Math.abs(other.x - from.x));
      show();
    };
  });
  attach(document);
  // `report.js` draws more when something is opened.
  document.addEventListener("drawn", (event) => attach(event.target));
})();
