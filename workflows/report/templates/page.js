"use strict";
// Shows one view at a time, and linked documents from the JSON that stands in the page. Whatever comes from the dump
// becomes a text node or an attribute, never markup. In print all views are shown.

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

// Views

const views = [...document.querySelectorAll(".view")];

/** Shows the view that the address names, or that holds the place that it names; the first without one. */
function showView() {
  const named = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const shown = (named && named.closest(".view")) || views[0];
  for (const view of views) view.hidden = view !== shown;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${shown.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (named && named !== shown) named.scrollIntoView();
  else scrollTo(0, 0);
}

/** Gives each cell the name of its column, for narrow screens, where a row is a list. */
function nameCells() {
  for (const table of document.querySelectorAll(".wide > table")) {
    const names = [...table.querySelectorAll("thead th")].map((head) => head.textContent);
    for (const row of table.querySelectorAll("tbody tr")) [...row.cells].forEach((cell, at) => { cell.dataset.column = names[at] ?? ""; });
  }
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
nameCells();
showView();
addEventListener("hashchange", showView);
