// Returns the faults of a page in the browser. The function runs inside the page, so it uses nothing outside of itself.

export function complaintsOfPage({ mayBeEmpty }) {
  const found = [];
  const SLACK = 1;

  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    found.push(`the page is ${root.scrollWidth} px wide in a window of ${root.clientWidth}: ${widest()}`);
  }
  if (document.querySelectorAll("h1").length !== 1) found.push("there is not one h1");
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) found.push(`two elements have the id ${twice}`);
  for (const link of document.querySelectorAll("a[href^='#'], use")) {
    const target = (link.getAttribute("href") ?? "").slice(1);
    if (!ids.includes(target)) found.push(`a link leads to ${target}, which is not there`);
  }

  // On a desktop a whole table is visible, unless it stands beside a picture and has half the width. On a phone it may
  // scroll.
  for (const table of document.querySelectorAll(".scroll")) {
    if (root.clientWidth >= 1200 && !table.closest(".data") && table.scrollWidth > table.clientWidth + SLACK) {
      const name = table.getAttribute("aria-label") ?? table.getAttribute("aria-labelledby");
      found.push(`the table “${name}” is cut: ${table.scrollWidth} px wide in ${table.clientWidth}`);
    }
  }
  for (const picture of document.querySelectorAll("figure.picture")) {
    const shown = [...picture.querySelectorAll("svg")].filter((svg) => svg.getClientRects().length > 0);
    if (shown.length !== 1) found.push(`${picture.id}: ${shown.length} sizes are shown`);
    for (const svg of shown) look(svg, picture.id);
  }
  found.push(...overlaps());
  for (const svg of document.querySelectorAll("svg")) {
    for (const bad of svg.outerHTML.match(/\b(NaN|Infinity|undefined)\b(?=[\s",])/g) ?? []) found.push(`a picture has ${bad} in it`);
  }
  found.push(...contrasts());
  return [...new Set(found)];

  // Parts that stand side by side in the answer, the tools and a row must not overlap or be cut.
  function overlaps() {
    const bad = new Set();
    for (const place of document.querySelectorAll(".hero, .asides, .tools, .chips, .axis, .row > summary, .group > h2, .rail")) {
      const parts = [...place.children].filter(isShown).map((part) => ({ part, box: part.getBoundingClientRect() }));
      const isScrolled = getComputedStyle(place).overflowX === "auto";
      for (const [index, { part, box }] of parts.entries()) {
        const name = `${place.className || place.tagName}: ${part.className.baseVal ?? part.className}`;
        if (!isScrolled && (box.left < -SLACK || box.right > root.clientWidth + SLACK)) bad.add(`${name} leaves the window`);
        for (const other of parts.slice(index + 1)) {
          const across = Math.min(box.right, other.box.right) - Math.max(box.left, other.box.left);
          const down = Math.min(box.bottom, other.box.bottom) - Math.max(box.top, other.box.top);
          if (across > SLACK && down > SLACK) bad.add(`${name} overlaps ${other.part.className.baseVal ?? other.part.className}`);
        }
        if (part.scrollWidth > part.clientWidth + SLACK && part.clientWidth > 0 && getComputedStyle(part).overflowX === "visible") {
          bad.add(`${name} is wider than its place: “${part.textContent.trim().slice(0, 40)}”`);
        }
      }
    }
    return [...bad].slice(0, 6);
  }

  function look(svg, id) {
    if (!mayBeEmpty && marksIn(svg) === 0) found.push(`${id}: no marks`);
    const frame = svg.getBoundingClientRect();
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim() !== "" && isShown(text));
    const boxes = texts.map((text) => ({ words: text.textContent.trim(), box: boxOf(text) }));
    for (const { words, box } of boxes) {
      const out = Math.max(frame.left - box.left, box.right - frame.right, frame.top - box.top, box.bottom - frame.bottom);
      if (out > SLACK) found.push(`${id}: “${words}” leaves its picture by ${out.toFixed(1)} px`);
    }
    for (let i = 0; i < boxes.length; i += 1) {
      for (let j = i + 1; j < boxes.length; j += 1) {
        const [a, b] = [boxes[i].box, boxes[j].box];
        const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
        const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (across > SLACK && down > SLACK) {
          found.push(`${id}: “${boxes[i].words}” and “${boxes[j].words}” overlap by ${across.toFixed(1)} × ${down.toFixed(1)} px`);
        }
      }
    }
    for (const { words, box } of boxes) {
      if (coversMarks(svg, box)) found.push(`${id}: “${words}” covers marks`);
    }
    const size = texts.length > 0 ? parseFloat(getComputedStyle(texts[0]).fontSize) * scaleOf(svg) : 12;
    if (size < 9) found.push(`${id}: text is ${size.toFixed(1)} px high`);
  }

  // The ink of the letters and not their line box, because lines may be closer than their leading.
  function boxOf(text) {
    const box = text.getBoundingClientRect();
    const lead = Math.min(box.width, box.height) * 0.12;
    const upright = box.height > box.width && text.textContent.trim().length > 2;
    return upright
      ? { left: box.left + lead, right: box.right - lead, top: box.top, bottom: box.bottom }
      : { left: box.left, right: box.right, top: box.top + lead, bottom: box.bottom - lead };
  }

  function isShown(element) {
    const style = getComputedStyle(element);
    return style.visibility !== "hidden" && style.display !== "none" && element.getClientRects().length > 0;
  }

  function scaleOf(svg) {
    const view = svg.viewBox.baseVal;
    return view && view.width > 0 ? svg.getBoundingClientRect().width / view.width : 1;
  }

  function marksIn(svg) {
    const marks = svg.querySelectorAll("[data-series] > path[d^='M'], .cells *");
    return [...marks].filter((mark) => mark.getClientRects().length > 0).length;
  }

  // Returns whether a text stands in the frame, among the marks. Numbers on the cells of a heat map and figures beside
  // rows are allowed.
  function coversMarks(svg, box) {
    const groups = [...svg.querySelectorAll("g[data-series]")].filter((group) => group.getClientRects().length > 0);
    return groups.some((group) => {
      const marks = group.getBoundingClientRect();
      const across = Math.min(marks.right, box.right) - Math.max(marks.left, box.left);
      const down = Math.min(marks.bottom, box.bottom) - Math.max(marks.top, box.top);
      return across > SLACK + 6 && down > SLACK + 6;
    });
  }

  function widest() {
    const elements = [...document.querySelectorAll("body *")].filter((element) => !element.closest(".scroll"));
    const beyond = elements.filter((element) => element.getBoundingClientRect().right > root.clientWidth + SLACK);
    return beyond.slice(0, 3).map((element) => `${element.tagName.toLowerCase()}.${element.className}`).join(", ");
  }

  // The contrast of text must be at least 4.5 : 1, which is level AA of WCAG.
  function contrasts() {
    const low = new Set();
    const ground = luminance(getComputedStyle(document.body).backgroundColor);
    for (const element of document.querySelectorAll("p, li, dt, dd, th, td, summary, code, button, .verdict, .said, .here, .na, svg text")) {
      if (!isShown(element) || element.closest("[aria-hidden]") || element.textContent.trim() === "") continue;
      const isText = element instanceof SVGElement;
      const style = getComputedStyle(element);
      const painted = isText ? style.fill : style.color;
      const cell = isText ? cellUnder(element) : undefined;
      const ratio = contrast(luminance(painted), cell ? luminance(getComputedStyle(cell).fill) : ground);
      if (ratio < 4.5) low.add(`“${element.textContent.trim().slice(0, 30)}” has a contrast of ${ratio.toFixed(1)}`);
    }
    return [...low].slice(0, 5);
  }

  // Returns the background of a text on a coloured cell.
  function cellUnder(text) {
    const box = text.getBBox();
    const middle = new DOMPoint(box.x + box.width / 2, box.y + box.height / 2);
    return [...text.ownerSVGElement.querySelectorAll(".cells path")].find((path) => path.isPointInFill(middle));
  }

  function contrast(one, other) {
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  }

  function luminance(color) {
    const channels = (color.match(/[\d.]+/g) ?? ["0", "0", "0"]).slice(0, 3).map((text) => Number(text) / 255);
    const [red, green, blue] = channels.map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  }
}
