// The table of tests. Only rows near the window are in the document, so a thousand cost as much as ten.

const EXTRA_ROWS = 8;
const tableView = { rows: [], cursor: -1, from: -1, to: -1, body: null, whole: false };

// Columns that sort: what comes first has the least of these.
const SORTS = {
  outcome: (test) => test.worst,
  test: (test) => test.id,
  metric: (test) => shownMetric(test)?.name ?? "",
  change: (test) => -Math.abs(shownMetric(test)?.change ?? 0),
  saving: (test) => -largestSaving(test),
};

function shownMetric(test) {
  return state.metric ? (test.metrics.find((metric) => metric.name === state.metric) ?? null) : mainMetric(test);
}

const searched = new Map();
function searchText(test) {
  if (!searched.has(test)) {
    searched.set(test, [test.id, test.key, test.outcome, test.summary, ...test.setting.flat()].join("\n").toLowerCase());
  }
  return searched.get(test);
}

function chosenTests() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = page.tests.filter((test) =>
    (!state.outcome || test.outcome === state.outcome) &&
    (!state.key || test.key === state.key) &&
    (!state.metric || shownMetric(test)) &&
    words.every((word) => searchText(test).includes(word)));
  const [column, reverse] = sortOf();
  const keys = new Map(chosen.map((test) => [test, SORTS[column](test)]));
  // Of equal ones, the page has the worse first.
  const places = new Map(page.tests.map((test, place) => [test, place]));
  const order = (one, other) => compared(keys.get(one), keys.get(other)) || places.get(one) - places.get(other);
  chosen.sort(reverse ? (one, other) => order(other, one) : order);
  return chosen;
}

const compared = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

function sortOf() {
  const [, minus, column] = /^(-?)(.*)$/.exec(state.sort);
  return SORTS[column] ? [column, minus === "-"] : ["outcome", false];
}

function testTable() {
  tableView.body = make("tbody", { role: "rowgroup" });
  const table = make("table", { class: "tests", role: "table", "aria-label": "Tests" }, make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, tableHeads())), tableView.body);
  tableView.body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-place]");
    if (row && !event.target.closest("a")) go({ test: names.get(tableView.rows[row.dataset.place]) });
  });
  return table;
}

function tableHeads() {
  const [column, reverse] = sortOf();
  const head = (kind, text, sorts, more = "") => {
    const on = column === sorts;
    const sort = sorts ? { "aria-sort": on ? (reverse ? "descending" : "ascending") : "none" } : {};
    const next = on && !reverse ? `-${sorts}` : sorts;
    const inside = sorts
      ? make("button", { type: "button", "data-sort": sorts, onclick: () => go({ sort: next === "outcome" ? "" : next }) }, text, on ? (reverse ? " ↑" : " ↓") : "")
      : make("button", { type: "button", disabled: true }, text);
    return make("th", { class: `${kind} ${more}`, scope: "col", role: "columnheader", ...sort }, inside);
  };
  return [head("outcome", "Outcome", "outcome"), head("test", "Test", "test"), head("metric", "Metric", "metric"), head("value", "Value", "", "number"),
    head("change", "To baseline", "change", "number"), head("trend", "History", ""), head("saving", "Could save", "saving", "number")];
}

function refreshTable() {
  const before = tableView.rows[tableView.cursor];
  tableView.rows = chosenTests();
  tableView.cursor = tableView.rows.indexOf(before);
  tableView.from = -1;
  const head = tableView.body.parentElement.querySelector("thead tr");
  const focused = document.activeElement?.dataset?.sort;
  head.replaceChildren(...tableHeads());
  if (focused) head.querySelector(`[data-sort="${focused}"]`)?.focus();
  tableView.body.parentElement.setAttribute("aria-rowcount", tableView.rows.length + 1);
  drawRows();
}

const rowHeight = () => (innerWidth <= 704 ? 58 : 35);

function drawRows() {
  const { rows, body, whole } = tableView;
  if (!body?.isConnected) return;
  const height = rowHeight();
  const first = Math.floor(-body.getBoundingClientRect().top / height);
  const from = whole ? 0 : Math.max(0, Math.min(first - EXTRA_ROWS, rows.length - 1));
  const to = whole ? rows.length : Math.min(rows.length, Math.max(0, first) + Math.ceil(innerHeight / height) + EXTRA_ROWS);
  if (from === tableView.from && to === tableView.to && tableView.height === height) return;
  Object.assign(tableView, { from, to, height });
  const lines = rows.slice(from, to).map((test, place) => testRow(test, from + place));
  body.replaceChildren(spaceRow(from * height), ...lines, spaceRow((rows.length - to) * height));
  if (!rows.length) body.replaceChildren(make("tr", { class: "space" }, make("td", { colspan: 7, class: "empty quiet" }, "No test is like this. ", make("a", { href: addressOf({ ...EMPTY }) || "#" }, "Show all"))));
}

function spaceRow(height) {
  const cell = make("td");
  cell.style.height = `${height}px`;
  return make("tr", { class: "space", "aria-hidden": "true" }, cell);
}

// An id as its folder and file, and the test in it; that of a capture as its folder and file.
function idParts(id) {
  const end = id.indexOf("::");
  const cut = end < 0 ? id.lastIndexOf("/") + 1 : end + 2;
  return [cut ? make("bdi", { class: "folder" }, id.slice(0, cut)) : null, make("bdi", { class: "name" }, id.slice(cut))];
}

function testRow(test, place) {
  const metric = shownMetric(test);
  const tone = state.metric && metric ? toneOf(metric.outcome) : toneOfTest(test);
  const change = metric?.change ?? null;
  const saving = largestSaving(test);
  const cell = (kind, ...content) => make("td", { class: kind, role: "cell" }, content);
  const row = make("tr", { role: "row", "data-place": place, "aria-rowindex": place + 2, class: place === tableView.cursor ? "cursor" : "" },
    cell("outcome", badge(state.metric && metric ? metric.outcome : test.outcome, tone)),
    cell("test", make("div", { class: "line" }, make("a", { class: "id", href: addressOf({ test: names.get(test) }), title: test.id }, idParts(test.id)), make("small", null, test.key))),
    cell("metric quiet", metric?.name ?? ""),
    cell("value number", metric ? amount(metric, metric.value) : ""),
    cell(`change number ${metric ? toneOf(metric.outcome) : ""}`, change === null ? "" : signedPercent(change)),
    cell("trend", metric ? sparkline(metric, toneOf(metric.outcome)) : null),
    cell("saving number quiet", saving ? microseconds(saving) : ""));
  return row;
}

// Moves the cursor by so many rows, and shows it.
function moveCursor(step) {
  const { rows, body } = tableView;
  if (!rows.length) return;
  tableView.cursor = Math.max(0, Math.min(rows.length - 1, tableView.cursor + step));
  const top = body.getBoundingClientRect().top + tableView.cursor * rowHeight();
  if (top < 60 || top > innerHeight - 2 * rowHeight()) scrollBy({ top: top - innerHeight / 2, behavior: "instant" });
  tableView.from = -1;
  drawRows();
  body.querySelector("tr.cursor a")?.focus({ preventScroll: true });
}
