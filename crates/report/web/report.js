// Finds, opens and copies claims. The row of a claim holds its data; the address holds the search and the open claim.
(() => {
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];
  const rows = $$(".row"), groups = $$(".group"), tools = $(".tools[role]");
  // A typed address may be undecodable, such as `#100%`.
  const fragment = () => {
    try {
      return decodeURIComponent(location.hash.slice(1));
    } catch {
      return location.hash.slice(1);
    }
  };

  // The pictures of closed sections are packed, see `html/pack.rs`. All are unpacked when the first one is needed.
  let parts;
  const unpack = async () => {
    const packed = $("#packed").textContent;
    const [filled, digits] = [Number(packed[0]), packed.slice(1).replaceAll("!", "<").replaceAll("#", ">")];
    const bytes = new DataView(new ArrayBuffer((digits.length / 5) * 4));
    for (let from = 0; from < digits.length; from += 5) {
      let word = 0;
      for (let at = from; at < from + 5; at++) word = word * 85 + digits.charCodeAt(at) - 40;
      bytes.setUint32((from / 5) * 4, word);
    }
    const stream = new Blob([bytes.buffer.slice(0, bytes.byteLength - filled)]).stream().pipeThrough(new DecompressionStream("deflate"));
    const [frames, missing] = JSON.parse(await new Response(stream).text());
    const next = Object.fromEntries(Object.entries(missing).map(([name, values]) => [name, values.split("\n").values()]));
    return frames.map((frame) => frame.replace(/(?:([\w-]+)=")?\x7f/g, (blank, name = "") =>
      blank.slice(0, -1) + next[name].next().value));
  };
  const draw = async (opened) => {
    for (const place of $$("[data-packed]", opened)) {
      if (place.parentElement.closest("details") !== opened) continue;
      parts ??= unpack();
      try {
        place.innerHTML = (await parts)[place.dataset.packed];
      } catch {
        place.textContent = "This browser can’t unpack the pictures; ascertain report RUN --svg ID prints each.";
      }
      place.removeAttribute("data-packed");
      place.dispatchEvent(new Event("drawn", { bubbles: true }));
      offerCopies(place);
    }
  };
  document.addEventListener("toggle", (event) => event.target.open && draw(event.target), true);

  const button = (words, act) => {
    const made = document.createElement("button");
    Object.assign(made, { type: "button", textContent: words, onclick: () => act(made) });
    return made;
  };
  const copy = async (text, from) => {
    const words = from.textContent;
    try {
      await navigator.clipboard.writeText(text);
      from.textContent = "Copied";
    } catch {
      from.textContent = "Copying is not allowed";
    }
    setTimeout(() => (from.textContent = words), 1500);
  };
  const words = (element) => (element ? element.textContent.trim().replace(/\s+/g, " ") : "");
  const cells = (row) => {
    const both = (column) => [$(column, row).firstChild, $(`${column} small`, row)].map(words);
    const [[claimed, said], [here, range]] = [".said", ".here"].map(both);
    return { id: words($(".acts code", row)), verdict: row.dataset.answer, claim: words($(".says", row)), claimed, said, here, range };
  };
  const csv = (shown) => {
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = shown.map((row) => Object.values(cells(row)));
    return [["id", "verdict", "claim", "claimed", "said", "here", "range"], ...lines].map((line) => line.map(quoted).join(",")).join("\n") + "\n";
  };
  const markdown = (row) => {
    const { id, verdict, claim, claimed, here, range } = cells(row);
    const figures = [claimed && `claimed ${claimed}`, here && `here ${here}${range && ` (${range})`}`].filter(Boolean).join("; ");
    return `**${verdict}**: ${claim}${figures && ` (${figures})`}. ${words($(".sentence", row))} \`${id}\`\n`;
  };
  // A picture on its own needs the colours of the page.
  const svg = (figure) => {
    const drawing = $$("svg", figure).find((shown) => shown.getClientRects().length).cloneNode(true);
    const style = document.createElementNS("http://www.w3.org/2000/svg", "style");
    style.textContent = $("style").textContent;
    drawing.prepend(style);
    return new XMLSerializer().serializeToString(drawing);
  };
  const offerCopies = (within) => $$("figure.picture > figcaption", within).forEach((caption) =>
    caption.append(" ", button("Copy SVG", (from) => copy(svg(caption.parentElement), from))));
  offerCopies(document);
  for (const row of rows) {
    $(".acts", row).append(
      button("Copy link", (from) => copy(`${location.href.split("#")[0]}#${row.id}`, from)),
      button("Copy Markdown", (from) => copy(markdown(row), from)));
  }

  const differences = $("#differences");
  if (differences) {
    differences.closest(".tools").hidden = false;
    differences.onchange = () => $(".aligned").classList.toggle("differing", differences.checked);
    differences.onchange();
  }

  addEventListener("hashchange", reveal);
  if (!tools) return reveal();
  tools.hidden = false;
  const [input, sort, all, output] = ["[type=search]", "select", ".all", "output"].map((part) => $(part, tools));
  const chips = $$(".chips button", tools);
  const texts = new Map(rows.map((row) => [row, `${row.id} ${words($("summary", row))}`.toLowerCase()]));
  const home = new Map(groups.map((group) => [group, $$(":scope > .row", group)]));
  const sorted = document.createElement("section");
  sorted.setAttribute("aria-label", "All claims, furthest from the claim first");
  groups[0].before(sorted);
  const isShown = (row) => !row.hidden;
  const nothing = document.createElement("p");
  Object.assign(nothing, { className: "nothing", textContent: "Nothing found; Esc shows all.", hidden: true });
  sorted.after(nothing);
  const showAll = () => {
    input.value = "";
    chips.forEach((chip) => (chip.ariaPressed = "false"));
  };
  const size = () => {
    const height = getComputedStyle(tools).position === "sticky" ? tools.offsetHeight : 0;
    document.documentElement.style.setProperty("--tools", `${height}px`);
  };

  const arrange = () => {
    const isFar = sort.value === "far";
    if (isFar === sorted.childElementCount > 0) return;
    if (isFar) sorted.append(...rows.toSorted((one, other) => one.dataset.far - other.dataset.far));
    else for (const [group, own] of home) $("h2, h3", group).after(...own);
  };
  const find = () => {
    const pressed = chips.filter((chip) => chip.ariaPressed === "true").map((chip) => chip.value);
    const wanted = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const isOfVerdict = !pressed.length || pressed.includes(row.dataset.answer);
      row.hidden = !isOfVerdict || !wanted.every((word) => texts.get(row).includes(word));
    }
    const isFinding = pressed.length || wanted.length;
    for (const group of groups) {
      const isEmpty = !$$(":scope > .row", group).some(isShown);
      group.hidden = isEmpty && (isFinding || sort.value === "far");
    }
    const count = rows.filter(isShown).length;
    output.textContent = isFinding ? `${count} of ${rows.length}` : "";
    nothing.hidden = count > 0;
    size();
    return new URLSearchParams(Object.entries({ q: input.value.trim(), v: pressed.join(), sort: sort.value }).filter(([, value]) => value));
  };
  const write = (address) => history.replaceState(null, "", address ? `#${address}` : location.pathname + location.search);
  const apply = () => {
    arrange();
    write(String(find()));
  };
  input.oninput = sort.onchange = apply;
  chips.forEach((chip) => (chip.onclick = () => {
    chip.ariaPressed = String(chip.ariaPressed !== "true");
    apply();
  }));
  $(".csv", tools).onclick = (event) => copy(csv($$(".row").filter(isShown)), event.currentTarget);
  let areOpen = false;
  all.onclick = () => {
    areOpen = !areOpen;
    rows.filter(isShown).forEach((row) => (row.open = areOpen));
    all.textContent = areOpen ? "Close all" : "Open all";
  };

  // An address names a claim or a search.
  function reveal() {
    const address = fragment(), target = document.getElementById(address);
    if (!target && tools && address.includes("=")) {
      const asked = new URLSearchParams(location.hash.slice(1));
      input.value = asked.get("q") ?? "";
      sort.value = asked.get("sort") === "far" ? "far" : "";
      chips.forEach((chip) => (chip.ariaPressed = String((asked.get("v") ?? "").split(",").includes(chip.value))));
      arrange();
      find();
    }
    if (!target) return;
    if (target.hidden) {
      showAll();
      find();
    }
    if (target.matches(".row")) target.open = true;
    // The tools above the target are visible by now.
    target.scrollIntoView();
  }
  addEventListener("resize", size);
  size();
  reveal();
  document.addEventListener("toggle", ({ target }) => {
    if (!target.matches(".row")) return;
    const isFinding = location.hash.includes("=") && !document.getElementById(fragment());
    if (!isFinding) write(target.open ? target.id : "");
  }, true);

  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && (event.target === input || !nothing.hidden)) {
      showAll();
      apply();
      input.blur();
    }
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      input.focus();
    }
    const step = { j: 1, k: -1 }[event.key];
    if (!step) return;
    const shown = $$(".row").filter(isShown);
    const next = shown[shown.findIndex((row) => row.contains(document.activeElement)) + step] ?? shown[step > 0 ? shown.length - 1 : 0];
    $("summary", next)?.focus();
  });

  const seen = new IntersectionObserver((entries) => entries.filter((entry) => entry.isIntersecting).forEach(({ target }) =>
    $$(".rail a").forEach((link) => link.classList.toggle("on", link.getAttribute("href") === `#${target.id}`))),
  { rootMargin: "-15% 0px -75%" });
  groups.forEach((group) => seen.observe(group));
})();
