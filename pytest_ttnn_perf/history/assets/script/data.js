// What the page shows, as written into it. Records have the names and units of page_html.py.
const { page, tones } = JSON.parse(document.getElementById("data").textContent);

const toneOf = (outcome) => tones[outcome.toUpperCase().replaceAll(" ", "_")] ?? "none";
const toneOfTest = (test) => (test.failed ? "bad" : toneOf(test.outcome));
const mainMetric = (test) => (test.main === null ? null : test.metrics[test.main]);

// A history, run after run.
const pointsOf = ({ runs, values, outcomes, marks }) =>
  values.map((value, place) => ({ value, run: page.runs[runs[place]], outcome: outcomes[place], mark: marks[place] }));

const byId = new Map(page.tests.map((test) => [test.id, test]));

// Numbers and names as people read them.

// Four significant digits, without an exponent where that can be read.
function digits(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(4)))));
  if (size < -5 || size >= 15) return value.toExponential(3);
  return grouped(Number(value.toPrecision(4)).toFixed(Math.max(0, 3 - size)));
}

// Six digits, for what is close to 1; what is short of 1 never reads as 1.
function accuracy(value) {
  const text = String(Number(value.toPrecision(6)));
  return text === "1" && value < 1 ? ">0.999999" : text;
}

function grouped(text) {
  const [whole, fraction] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction ? `${spaced}.${fraction}` : spaced;
}

// A terminal has us for µs.
const withUnit = (text, unit) => (unit ? `${text} ${unit === "us" ? "µs" : unit}` : text);

// A number of a metric, in the unit that it is shown in.
function amount(metric, value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && metric.scale === 1) return withUnit(grouped(String(value)), metric.unit);
  const shown = value * metric.scale;
  if (!metric.unit && Math.abs(shown) <= 1 && Math.abs(shown) >= 0.5) return accuracy(shown);
  return withUnit(digits(shown), metric.unit);
}

const microseconds = (value) => withUnit(value === null ? "–" : grouped(value.toFixed(Math.abs(value) < 100 ? 2 : 1)), "µs");
const percent = (fraction) => `${(fraction * 100).toFixed(1)} %`;

function signed(text, value) {
  const minus = text.replace("-", "−");
  return value > 0 ? `+${minus}` : minus;
}

const signedPercent = (fraction) => signed(percent(fraction), Number(fraction.toFixed(4)));
const signedMicroseconds = (value) => signed(microseconds(value), Number(value.toFixed(2)));
const counted = (count, noun) => `${grouped(String(count))} ${noun}${count === 1 ? "" : "s"}`;
const shortCommit = (commit) => (/^[0-9a-f]{12,}$/.test(commit) ? commit.slice(0, 9) : commit);
const moment = (time) => time.slice(0, 16).replace("T", " ");

// How a run is told apart from others, in lines.
function runLines(run) {
  const code = [shortCommit(run.commit), run.branch].filter(Boolean).join(" on ");
  return [run.label, code, run.host, moment(run.started_at)].filter(Boolean);
}

// Elements from texts. A text only ever becomes a text node or an attribute's value, never markup.

const SVG = "http://www.w3.org/2000/svg";
const SYMBOLS = { bad: "✕", unsure: "?", better: "▲", good: "●", none: "○" };

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const make = (tag, attributes, ...children) => filled(document.createElement(tag), attributes, children);
const draw = (tag, attributes, ...children) => filled(document.createElementNS(SVG, tag), attributes, children);

const badge = (outcome, tone) =>
  make("span", { class: `badge ${tone}` }, make("span", { "aria-hidden": "true" }, SYMBOLS[tone]), outcome);

// A command that can be copied.
function command(text) {
  const code = make("code", { tabindex: 0 }, text);
  const button = make("button", { type: "button", "aria-label": `Copy: ${text}` }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // No clipboard here: it is selected, for the keys that copy.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  return make("div", { class: "command" }, code, button);
}

// A table; a column is [heading, cell of a row, "number" where it is one].
function listing(columns, rows) {
  const kind = (column) => ({ class: column[2] ?? "" });
  const heads = columns.map((column) => make("th", { ...kind(column), scope: "col" }, column[0]));
  const lines = rows.map((row) => make("tr", null, columns.map((column) => make("td", kind(column), column[1](row)))));
  return make("div", { class: "scroll" },
    make("table", { class: "listing" }, make("thead", null, make("tr", null, heads)), make("tbody", null, lines)));
}

// Something that is made when a reader opens it.
function opened(summary, content) {
  const details = make("details", null, make("summary", null, summary));
  details.addEventListener("toggle", () => details.open && details.append(content()), { once: true });
  return details;
}

const section = (title, ...content) => make("section", null, make("h2", null, title), ...content);

// What a reader looks at is in the address: it can be sent to others, and the back button works.

const EMPTY = { test: "", outcome: "", search: "", sort: "" };
let state = { ...EMPTY };

function stateOfAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.keys(EMPTY).map((name) => [name, found.get(name) ?? ""]));
}

// The address of what is looked at now, but for some changes.
function addressOf(changes) {
  const told = Object.entries({ ...state, ...changes }).filter(([, value]) => value);
  return `#${new URLSearchParams(told)}`;
}

const go = (changes) => (location.hash = addressOf(changes));
// For what is typed: the back button does not go through every letter.
const goOn = (changes) => location.replace(addressOf(changes));
