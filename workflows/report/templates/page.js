"use strict";
// Draws the figures, and shows linked documents, from the JSON that stands in the page. Whatever comes from the dump
// becomes a text node or an attribute, never markup.

const data = (name) => JSON.parse(document.getElementById(`data-${name}`).textContent);
const count = (number) => number.toLocaleString("en");
const percent = (share) => `${(100 * share).toFixed(1)}%`;

/** An element with attributes and children; texts become text nodes. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A title or name, whose direction of writing does not spread. */
const name = (text) => element("bdi", {}, text);

// Figures

const dark = matchMedia("(prefers-color-scheme: dark)");
const coarse = matchMedia("(pointer: coarse)");

function colours() {
  const style = getComputedStyle(document.documentElement);
  const colour = (variable) => style.getPropertyValue(variable).trim();
  return {
    ink: colour("--ink"), quiet: colour("--quiet"), rule: colour("--rule"), ground: colour("--ground"),
    font: colour("--sans"), lines: [0, 1, 2, 3, 4, 5].map((number) => colour(`--plot-${number}`)),
  };
}

/** A figure in the page's colours, with the traces of one choice where it has several. */
function themed(figure, choice) {
  const theme = colours();
  const axis = { gridcolor: theme.rule, linecolor: theme.rule, zeroline: false, automargin: true, ticks: "" };
  const layout = structuredClone(figure.layout);
  for (const key of ["xaxis", "yaxis"]) {
    layout[key] = { ...axis, ...layout[key] };
    layout[key].title = { ...layout[key].title, font: { size: 12, color: theme.quiet }, standoff: 8 };
  }
  Object.assign(layout, {
    autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", hovermode: "closest",
    margin: { l: 48, r: 8, t: 28, b: 40 }, font: { family: theme.font, size: 12, color: theme.ink },
    legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" },
    hoverlabel: { bgcolor: theme.ground, bordercolor: theme.rule, font: { family: theme.font, color: theme.ink } },
    dragmode: coarse.matches ? false : "zoom",
  });
  const shown = figure.data.filter((trace) => choice === undefined || trace.meta.choice === choice);
  const traces = structuredClone(shown).map((trace) => {
    const colour = theme.lines[trace.meta.colour % theme.lines.length];
    if (trace.type === "bar") trace.marker = { color: colour, opacity: 0.55, line: { width: 0 } };
    else {
      trace.line = { width: 2, ...trace.line, color: colour };
      trace.marker = { size: 6, ...trace.marker, color: colour };
    }
    return trace;
  });
  return [traces, layout, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] }];
}

/** A menu above a plot whose traces belong to several choices. */
function chooser(place, figure) {
  const choices = [...new Set(figure.data.map((trace) => trace.meta.choice))].filter((each) => each !== undefined);
  if (choices.length < 2) return () => choices[0];
  const menu = element("select", { id: `choice-${place.dataset.figure}` });
  menu.append(...choices.map((choice) => element("option", { value: choice }, choice)));
  menu.addEventListener("change", () => Plotly.react(place, ...themed(figure, menu.value)));
  place.before(element("div", { class: "controls" }, element("label", { for: menu.id }, figure.layout.meta.choice), menu));
  return () => menu.value;
}

/** Draws all figures, each when the page has nothing else to do, so that text is there at once. */
function drawFigures() {
  const figures = data("figures");
  const places = [...document.querySelectorAll("[data-figure]")];
  const chosen = new Map(places.map((place) => [place, chooser(place, figures[place.dataset.figure])]));
  const draw = (place) => Plotly.react(place, ...themed(figures[place.dataset.figure], chosen.get(place)()));
  const waiting = [...places];
  const later = window.requestIdleCallback ?? setTimeout; // WebKit has no idle callbacks
  const drawNext = () => {
    if (waiting.length) draw(waiting.shift()).then(() => later(drawNext));
    else document.documentElement.dataset.drawn = performance.now().toFixed(0); // milliseconds since the page was asked for
  };
  later(drawNext);
  // Those that wait are drawn in the colours of their time.
  dark.addEventListener("change", () => places.filter((place) => !waiting.includes(place)).forEach(draw));
}

// Texts to read

/** A menu of items with buttons for the one before and the next; `show` gets the chosen one, first the first. */
function leafThrough([menu, previous, next], items, label, show) {
  const go = (number) => {
    menu.value = number;
    previous.disabled = number === 0;
    next.disabled = number === items.length - 1;
    show(items[number]);
  };
  menu.append(...items.map((item, number) => element("option", { value: number }, label(item))));
  menu.addEventListener("change", () => go(Number(menu.value)));
  previous.addEventListener("click", () => go(Number(menu.value) - 1));
  next.addEventListener("click", () => go(Number(menu.value) + 1));
  if (items.length) go(0);
}

/** Calls back with the mark of a text that is pointed at, touched or has the focus. */
function onMarks(text, point) {
  for (const event of ["pointerover", "click", "focusin"]) {
    text.addEventListener(event, ({ target }) => target.closest("mark") && point(target.closest("mark")));
  }
}

// Linked documents

const BECAME = {
  right: () => "right",
  wrong: ({ gold }) => (gold ? "wrong" : "wrong: the document names no page here"),
  missed: () => "not linked",
  extra: () => "the document has no link here",
  unlinked: ({ gold }) => (gold ? "not linked" : "not linked, as in the document"),
};

/** What became of a mention, and its candidates. */
function mentionElements(text, mention) {
  const { title, gold, probability, kind, candidates } = mention;
  const sure = title === null || probability === null ? "" : ` ${percent(probability)}`;
  const lacks = mention.lacks ? ", which the dump does not know" : "";
  const wanted = gold && kind !== "right" ? ["; wanted ", name(gold), lacks] : [];
  const line = element("p", {}, name(text), " → ", title === null ? "no page" : name(title), `${sure}: ${BECAME[kind](mention)}`, ...wanted);
  if (!candidates.length) return [line];
  const head = ["page", "probability", "prior", ""].map((cell, column) => element("th", column % 3 ? { class: "number" } : {}, cell));
  const rows = candidates.map(([page, share, prior, isGold]) => element(
    "tr", {}, element("td", {}, name(page)),
    ...[share, prior].map((value) => element("td", { class: "number" }, value === null ? "" : percent(value))),
    element("td", {}, isGold ? "in the document" : ""),
  ));
  const caption = `${count(candidates.length)} of ${count(mention.of)} pages that it can stand for`;
  return [line, element("div", { class: "wide" }, element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)))];
}

function prepareLinked() {
  const { documents } = data("linked");
  const ids = ["document", "previous", "next", "titles", "extent", "text", "mention"];
  const [menu, previous, next, titled, extent, text, panel] = ids.map((id) => document.getElementById(`linked-${id}`));
  let shown = [];
  const piece = (part) => {
    if (typeof part === "string") return part;
    const { kind, title, gold } = shown[part[1]];
    const role = { tabindex: 0, role: "button", "aria-controls": panel.id };
    return element("mark", { ...role, class: kind, "data-number": part[1], "data-target": title ?? gold ?? "no page" }, part[0]);
  };
  const show = (each) => {
    shown = each.mentions;
    const kinds = Object.keys(BECAME).map((kind) => [kind, shown.filter((mention) => mention.kind === kind).length]);
    const counts = kinds.filter(([, number]) => number).map(([kind, number]) => `${count(number)} ${kind}`);
    const others = each.left_out ? `; ${count(each.left_out)} across others left out` : "";
    const cut = each.cut ? `; the last ${count(each.cut)} characters left out` : "";
    extent.textContent = `${counts.join(", ") || "no mention"}${others}${cut}`;
    text.replaceChildren(element("p", { dir: "auto" }, ...each.text.map(piece)));
    text.scrollTop = 0;
    panel.replaceChildren();
  };
  leafThrough([menu, previous, next], documents, (each) => `${each.id} (${each.set})`, show);
  titled.addEventListener("change", () => text.classList.toggle("targets", titled.checked));
  onMarks(text, (mark) => panel.replaceChildren(...mentionElements(mark.textContent, shown[mark.dataset.number])));
}

if (document.getElementById("linked-document")) prepareLinked();
drawFigures();
