// What the page shows, as written into it. Records have the names and units of page_html.py.
const { page, tones } = JSON.parse(document.getElementById("data").textContent);

const toneOf = (outcome) => tones[outcome] ?? "none";
// What is worse but does not fail is a warning.
const toneOfTest = (test) => (test.failed ? "bad" : toneOf(test.outcome) === "bad" ? "unsure" : toneOf(test.outcome));
const mainMetric = (test) => (test.main === null ? null : test.metrics[test.main]);

const byId = new Map(page.tests.map((test) => [test.id, test]));

// Numbers and names as people read them.

// Four significant digits as on the terminal, without an exponent where that can be read.
function digits(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(4)))));
  if (size < -5 || size >= 15) return value.toExponential(3);
  return Number(value.toPrecision(4)).toFixed(Math.max(0, 3 - size));
}

// Six digits, for what is close to 1; what is short of 1 never reads as 1.
function accuracy(value) {
  const text = String(Number(value.toPrecision(6)));
  return text === "1" && value < 1 ? ">0.999999" : text;
}

const withUnit = (text, unit) => (unit ? `${text} ${unit}` : text);

// A number of a metric, in the unit that it is shown in.
function amount(metric, value) {
  if (value === null || value === undefined) return "–";
  if (metric.whole && Number.isInteger(value)) return withUnit(String(value), metric.unit);
  const shown = value * metric.scale;
  if (!metric.unit && Math.abs(shown) <= 1 && Math.abs(shown) >= 0.5) return accuracy(shown);
  return withUnit(digits(shown), metric.unit);
}

// A time in the unit that it fills.
function duration(us) {
  if (us === null) return "–";
  const [unit, factor] = [["s", 1e6], ["ms", 1e3], ["µs", 1]].find(([, size]) => Math.abs(us) >= size * 0.99995) ?? ["µs", 1];
  return `${digits(us / factor)} ${unit}`;
}

const percent = (fraction) => `${(fraction * 100).toFixed(1).replace("-0.0", "0.0")} %`;
const signed = (text, value) => (/[1-9]/.test(text) && value > 0 ? "+" : "") + text.replace("-", "−");
const signedPercent = (fraction) => signed(percent(fraction), fraction);
const signedDuration = (us) => signed(duration(us), us);
const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
const shortCommit = (commit) => (/^[0-9a-f]{12,}$/.test(commit) ? commit.slice(0, 9) : commit);

// A time where the reader is.
function moment(time) {
  const at = new Date(time);
  if (isNaN(at)) return time;
  return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16).replace("T", " ");
}

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
  const button = make("button", { type: "button", "aria-label": `Copy: ${text}` }, "Copy command");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // No clipboard here: it is selected, for the keys that copy.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => (button.textContent = "Copy command"), 1500);
  });
  return make("div", { class: "command" }, code, button);
}

// A text in which code stands in backticks.
const prose = (text) => text.split(/`([^`]+)`/).map((part, place) => (place % 2 ? make("code", null, part) : part));

// A table; a column is [heading, cell of a row, "number" where it is one]. Empty ones are left out.
function listing(columns, rows) {
  const kept = columns.map(([heading, cell, kind]) => ({ heading, kind, cells: rows.map(cell) }))
    .filter(({ cells }) => cells.some((cell) => cell !== null && cell !== ""));
  const heads = kept.map(({ heading, kind }) => make("th", { class: kind, scope: "col" }, heading));
  const lines = rows.map((_, place) => make("tr", null, kept.map(({ kind, cells }) => make("td", { class: kind }, cells[place]))));
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

const EMPTY = { test: "", rule: "", outcome: "", search: "", sort: "" };
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
