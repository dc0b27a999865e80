// Asks the service for the links of a text, piece by piece, and draws them. Texts, titles and answers may mean no good:
// they become text nodes and never markup, and titles are encoded in addresses.

const TRIES = 5; // of a request while the service is busy
const LEVELS = [[0.5, "high"], [0.1, "middle"], [0, "low"]];
const REASONS = { no_candidate: "No page is known by this name.", below_threshold: "No page is sure enough." };
let service = { wiki: null, piece_bytes: 4096 }; // what /health says
let threshold = 0;
let asked = null; // the text, how much of it is linked in UTF-16 units and in code points, and what stops the asking
let mentions = []; // what is drawn: {answer, best, first, start, end, button}
let chosen = null; // the mention in the panel

const the = (id) => document.getElementById(id);
const examples = [...the("examples").children];
const fail = (error) => (the("error").textContent = error.message);
const number = new Intl.NumberFormat("en").format;
const percent = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 }).format;
const isLinked = ({ answer, best }) => best !== null && answer.confidence >= threshold;
const countOfLinks = () => number(mentions.filter(isLinked).length);
const reasonOf = (mention) => (isLinked(mention) ? null : mention.best ? "below_threshold" : "no_candidate");
const byProbability = ({ candidates }) => candidates.toSorted((one, other) => other.probability - one.probability);

function make(name, values, ...children) {
  const made = Object.assign(document.createElement(name), values);
  made.append(...children);
  return made;
}

// Pieces of a text

const bodyOf = (text) => JSON.stringify({ documents: [{ text }], candidates: true });
const endOf = (text, pattern) => [...text.matchAll(pattern)].map((found) => found.index + found[0].length).at(-1) ?? 0;
const bytesOf = (text) => new TextEncoder().encode(bodyOf(text)).length;

/** How many UTF-16 units of a text fit in a request, and one character at least. */
function fitting(text, most) {
  let units = Math.min(text.length, most);
  for (let size; units > 1 && (size = bytesOf(text.slice(0, units))) > most; )
    units = Math.max(1, Math.floor((units * most) / size));
  return text.codePointAt(units - 1) > 0xffff ? units - 1 || 2 : units; // not half of a character
}

/** Where the first piece of a text ends, whose request has so many bytes at most. */
function endOfPiece(text, most) {
  const units = fitting(text, most);
  if (units === text.length) return units;
  const part = text.slice(0, units);
  const sentences = [...new Intl.Segmenter(undefined, { granularity: "sentence" }).segment(part)];
  const ends = [endOf(part, /\n\s*\n/g), sentences.at(-1).index, endOf(part, /\s+/g)];
  return ends.find((end) => end > units / 2) ?? units; // nearer the start it would make many small pieces
}

/** The pieces of a text with their answers; one that is too much work is halved. */
async function* answers(text, most, signal) {
  for (let rest = text; rest; ) {
    const piece = rest.slice(0, endOfPiece(rest, most));
    const answer = await ask(piece, signal);
    if (answer) yield [piece, answer];
    else yield* answers(piece, Math.floor(bytesOf(piece) / 2), signal);
    rest = rest.slice(piece.length);
  }
}

/** The answer to a piece; null where a shorter one is wanted. */
async function ask(piece, signal) {
  const request = { method: "POST", headers: { "Content-Type": "application/json" }, body: bodyOf(piece), signal };
  for (let tries = 1; ; tries++) {
    const answer = await fetch("link", request).catch(gone);
    if (answer.ok) return (await answer.json()).documents[0];
    if (answer.status === 413 && [...piece].length > 1) return null;
    if (answer.status !== 503 || tries === TRIES) {
      const said = await answer.json().catch(() => ({ error: answer.statusText }));
      throw new Error(`The service answered ${answer.status}: ${said.error}`);
    }
    the("status").textContent = "The service is busy, and will be asked again.";
    await pause(Math.min(30, Number(answer.headers.get("Retry-After") ?? 1)), signal);
  }
}

const gone = () => Promise.reject(new Error("The service does not answer. Is it running?"));
const pause = (seconds, signal) =>
  new Promise((go, end) => (setTimeout(go, seconds * 1000), signal.addEventListener("abort", end)));

// Linking

async function link() {
  asked?.stop.abort();
  const text = the("text").value.toWellFormed(); // half of a character would be refused
  const isEmpty = !text.trim();
  const own = (asked = { text, units: 0, points: 0, stop: new AbortController(), isBusy: !isEmpty });
  close();
  mentions = [];
  the("linked").replaceChildren();
  the("error").textContent = isEmpty ? "Type a text, or take an example." : "";
  report();
  try {
    for await (const [piece, answer] of answers(isEmpty ? "" : text, service.piece_bytes, own.stop.signal)) {
      if (!own.units && the("result").getBoundingClientRect().top > innerHeight / 2) the("result").scrollIntoView();
      draw(piece, answer.mentions);
      report();
    }
  } catch (error) {
    if (!own.stop.signal.aborted) fail(error);
  }
  own.isBusy = false;
  report();
}

function report() {
  const { units, text, isBusy } = asked;
  const part = units < text.length ? ` in the first ${number(units)} of ${number(text.length)} characters` : "";
  const count = `${countOfLinks()} of ${number(mentions.length)} names have a page${part}.`;
  the("status").textContent = units ? count : isBusy ? "Asking …" : "";
  the("copied").textContent = "";
  the("result").hidden = !units;
  the("stop").hidden = the("progress").hidden = !isBusy;
  the("main").ariaBusy = isBusy;
  Object.assign(the("progress"), { max: text.length, value: units });
}

/** Adds a piece to what is drawn. Offsets of answers count the code points of their piece, those of strings UTF-16. */
function draw(piece, found) {
  const units = [0];
  for (const character of piece) units.push(units.at(-1) + character.length);
  const drawn = new DocumentFragment();
  let done = 0;
  for (const answer of found.toSorted((one, other) => one.start - other.start)) {
    const [start, end] = [units[answer.start], units[answer.end]];
    if (start < done) continue; // it overlaps the one before
    // A <button> would be a block in its line, which no word wraps in, and behind which a comma begins the next line.
    const button = make("span", { role: "button", tabIndex: 0, textContent: piece.slice(start, end) });
    const best = answer.candidates.find((each) => each.title === answer.title) ?? byProbability(answer)[0] ?? null;
    const mention = { answer, best, first: asked.points, start: asked.units + start, end: asked.units + end, button };
    button.addEventListener("click", () => open(mention));
    show(mention);
    mentions.push(mention);
    drawn.append(piece.slice(done, start), button);
    done = end;
  }
  drawn.append(piece.slice(done));
  the("linked").append(drawn);
  asked.units += piece.length;
  asked.points += units.length - 1;
}

function show(mention) {
  const { answer, best, button } = mention;
  const reason = reasonOf(mention);
  button.className = reason ? "none" : LEVELS.find(([least]) => answer.confidence >= least)[1];
  button.title = reason ? REASONS[reason] : `${best.title}, ${percent(answer.confidence)}`;
}

function setThreshold(value) {
  threshold = value;
  the("least").textContent = the("threshold").ariaValueText = percent(threshold);
  mentions.forEach(show);
  if (chosen) fill(chosen);
  if (asked) report();
}

// The panel

function open(mention) {
  close();
  chosen = mention;
  fill(mention);
  the("panel").hidden = false;
  the("panel").scrollTop = 0;
  mention.button.ariaExpanded = true;
  mention.button.scrollIntoView({ block: "nearest" });
  the("panel-title").focus({ preventScroll: true });
}

function close() {
  if (!chosen) return;
  if (the("panel").contains(document.activeElement)) chosen.button.focus();
  chosen.button.ariaExpanded = null;
  the("panel").hidden = true;
  chosen = null;
}

function fill(mention) {
  const { answer, best, button } = mention;
  const candidates = byProbability(answer);
  const reason = reasonOf(mention);
  the("panel-title").textContent = button.textContent;
  the("verdict").replaceChildren(reason ? REASONS[reason] : pageLink(best));
  const [name, ofName] = answer.label ? [answer.label, answer.label_probability] : ["link", answer.link_probability];
  const product = `${percent(answer.confidence)} = ${percent(answer.probability)} page × ${percent(ofName)} ${name}`;
  the("facts").textContent = `${best ? `Confidence: ${product}. ` : ""}Step: ${answer.step}.`;
  const columns = Object.entries({
    prior: (each) => percent(each.prior),
    words: (each) => each.cosine?.toFixed(2),
    pages: (each) => each.coherence?.toFixed(2),
    model: (each) => each.model !== null && percent(each.model),
    "prob.": (each) => percent(each.probability),
  }).filter(([, value]) => candidates.some(value));
  const heads = ["candidate", ...columns.map(([name]) => name)].map((name) => make("th", { scope: "col" }, name));
  const rows = candidates.map((each) =>
    make("tr", {}, titleCell(each), ...columns.map(([, value]) => make("td", {}, value(each) || ""))),
  );
  the("candidates").tHead.replaceChildren(make("tr", {}, ...heads));
  the("candidates").tBodies[0].replaceChildren(...rows);
  the("candidates").hidden = !best;
}

function titleCell(page) {
  const { qid, own_id, step } = page;
  const id = qid ? outside(`https://www.wikidata.org/wiki/${encodeURIComponent(qid)}`, qid) : own_id;
  return make("th", { scope: "row" }, pageLink(page), make("small", { className: "quiet" }, id ?? "", id ? " · " : "", step));
}

const outside = (href, textContent) => make("a", { href, textContent, target: "_blank", rel: "noreferrer" });
const encoded = (title) => encodeURIComponent(title.replaceAll(" ", "_")).replace(/%(2F|3A|2C)/g, decodeURIComponent);
const addressOf = ({ title, own_id }) => (service.wiki && !own_id ? service.wiki + encoded(title) : null);
const pageLink = (page) => (addressOf(page) ? outside(addressOf(page), page.title) : make("bdi", {}, page.title));

// Copies, with the threshold as it is

const SPECIAL = /[[\]{}<>&|]|(?<=')'|'(?=')|(?<=_)_|_(?=_)|(?<=~)~|~(?=~)|(?<=-)-|(?=:\/\/):|^[*#:;=!\- \t]/gm; // as link's
const FORMATS = { json: asJson, wikitext: asWikitext, html: asHtml }; // by the ids of their buttons
const reference = (character) => `&#${character.codePointAt()};`;

function asJson() {
  const found = mentions.map((mention) => {
    const { candidates, ...answer } = mention.answer;
    const reason = reasonOf(mention);
    for (const name in answer) if (/^title$|^qid$|_id$/.test(name)) answer[name] = reason ? null : mention.best[name];
    return { ...answer, reason, start: mention.first + answer.start, end: mention.first + answer.end };
  });
  return JSON.stringify({ text: asked.text.slice(0, asked.units), mentions: found });
}

/** The linked text: links by `linked`, what is before, between and behind them by `plain`. */
function written(links, plain, linked) {
  let [made, done] = ["", 0];
  for (const mention of links) {
    made += plain(done, mention.start) + linked(mention);
    done = mention.end;
  }
  return made + plain(done, asked.units);
}

function asWikitext() {
  const { text } = asked;
  const units = text.split("");
  const refer = (character, at) => units.fill("", at, at + character.length).fill(reference(character), at, at + 1);
  for (const found of text.matchAll(SPECIAL)) refer(found[0], found.index);
  const links = mentions.filter((each) => isLinked(each) && !each.best.own_id);
  for (const { start, end } of links) { // a wiki takes letters beside a link into it
    const [before] = text.slice(Math.max(0, start - 2), start).match(/\p{L}$/u) ?? [];
    const [behind] = text.slice(end, end + 2).match(/^\p{L}/u) ?? [];
    if (before) refer(before, start - before.length);
    if (behind) refer(behind, end);
  }
  const escaped = (part) => part.replace(SPECIAL, reference);
  const plain = (start, end) => units.slice(start, end).join("");
  const linked = ({ best: { title }, start, end }) => {
    const colon = title.includes(":") || title.startsWith("/") ? ":" : ""; // no file, category or other language
    return `[[${colon}${escaped(title)}|${escaped(text.slice(start, end).trim().replace(/\s+/g, " "))}]]`;
  };
  return written(links, plain, linked);
}

function asHtml() {
  const escaped = (part) => part.replace(/[<>&"']/g, reference);
  const broken = (part) => part.replace(/\n\s*\n/g, "</p>\f<p>").replaceAll("\n", "<br>\n").replaceAll("\f", "\n");
  const lines = (start, end) => broken(escaped(asked.text.slice(start, end)));
  const linked = ({ best, start, end }) => {
    const address = addressOf(best) ? ` href="${escaped(addressOf(best))}"` : "";
    return `<a title="${escaped(best.title)}"${address}>${lines(start, end)}</a>`;
  };
  return `<p>${written(mentions.filter(isLinked), lines, linked)}</p>`;
}

async function copy(format) {
  the("copied").textContent = "";
  const text = FORMATS[format]();
  const give = (event) => (event.preventDefault(), event.clipboardData.setData("text/plain", text));
  if (navigator.clipboard) await navigator.clipboard.writeText(text);
  else { // it wants https, or this machine
    document.addEventListener("copy", give, { once: true });
    document.execCommand("copy");
  }
  the("copied").textContent = `Copied, with ${countOfLinks()} links.`;
}

// The start

function listen() {
  const on = (id, event, act) => the(id).addEventListener(event, act);
  on("link", "click", link);
  on("text", "keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && link());
  on("stop", "click", () => (asked.stop.abort(), the("link").focus())); // Stop hides, and would lose it
  on("threshold", "input", () => setThreshold((the("threshold").value / 100) ** 2)); // most confidences are small
  on("close", "click", close);
  on("linked", "keydown", (event) => ["Enter", " "].includes(event.key) && (event.preventDefault(), event.target.click()));
  document.addEventListener("keydown", (event) => event.key === "Escape" && close());
  for (const format in FORMATS) on(format, "click", () => copy(format).catch(fail));
  for (const each of examples) each.onclick = () => ((the("text").value = each.textContent), link());
}

async function introduce() {
  service = await (await fetch("health").catch(gone)).json();
  const dumps = service.dump.map((name) => name.replace(/(-pages-articles.*)?\.(xml|bz2|7z|gz).*/, ""));
  const facts = [...dumps, `${number(service.names)} names`, ...["model", "contexts", "ner"].filter((name) => service[name])];
  the("service").textContent = `Which Wikipedia pages a text mentions, by ${facts.join(", ")}.`;
  setThreshold(service.min_probability);
  the("threshold").value = Math.sqrt(threshold) * 100;
  const language = examples.some((each) => each.lang === service.language) ? service.language : "en";
  for (const each of examples) each.hidden = each.lang !== language;
}

listen();
introduce().catch(fail);
