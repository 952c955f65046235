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

const section = (title, ...content) => sectionOf("", title, ...content);

function sectionOf(kind, title, ...content) {
  return make("section", { class: kind }, make("h2", null, title), ...content);
}
