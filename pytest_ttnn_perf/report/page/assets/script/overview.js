// All tests: what failed, the table with its filters, and what is true of the run as a whole.

const search = make("input", { type: "search", placeholder: "Search tests ( / )", "aria-label": "Search tests", autocomplete: "off", spellcheck: "false" });
const shownCount = make("span", { class: "quiet", role: "status" });
const choices = {};

function overview() {
  search.addEventListener("input", () => goOn({ search: search.value.trim() ? search.value : "", test: "" }));
  const tools = make("div", { class: "tools", role: "search" }, search,
    outcomeChips(),
    choice("metric", "Main metric", page.tests.flatMap((test) => test.metrics.map((metric) => metric.name))),
    choice("key", "All keys", page.tests.map((test) => test.key)),
    make("button", { type: "button", "aria-label": "Keys", onclick: showHelp }, "?"), shownCount);
  return make("div", { id: "overview" },
    attentionSection(),
    make("section", { id: "tests" }, make("h2", null, "Tests"), tools, testTable()),
    journalsSection(),
    trendsSection(),
    differencesSection(),
    page.sweeps.length ? sectionOf("run", "Sweeps", make("div", { class: "stack" }, page.sweeps.map(sweepSection))) : null);
}

// A list to choose from; nothing where there is no choice.
function choice(name, all, words) {
  const known = [...new Set(words)].filter(Boolean);
  if (known.length < 2) return null;
  const select = make("select", { "aria-label": all, "data-filter": name }, make("option", { value: "" }, all), known.map((word) => make("option", { value: word }, word)));
  select.addEventListener("change", () => go({ [name]: select.value, test: "" }));
  choices[name] = select;
  return select;
}

// Buttons that show the tests of one outcome, with their number; nothing where all have one.
function outcomeChips() {
  const byWorst = [...page.tests].sort((one, other) => one.worst - other.worst);
  const words = [...new Set(byWorst.map((test) => test.outcome))];
  if (words.length < 2) return null;
  return make("div", { class: "chips", role: "group", "aria-label": "Outcome" }, words.map((word) => {
    const tests = page.tests.filter((test) => test.outcome === word);
    const tone = tests.some((test) => test.failed) ? "bad" : toneOf(word);
    const button = make("button", { type: "button", class: tone, "aria-pressed": "false", "data-outcome": word }, make("b", null, grouped(String(tests.length))), ` ${word}`);
    button.addEventListener("click", () => go({ outcome: state.outcome === word ? "" : word, test: "" }));
    return button;
  }));
}

function refreshTools() {
  if (document.activeElement !== search) search.value = state.search;
  for (const [name, select] of Object.entries(choices)) select.value = state[name];
  for (const button of document.querySelectorAll("[data-outcome]")) button.setAttribute("aria-pressed", button.dataset.outcome === state.outcome);
  const [some, all] = [tableView.rows.length, page.tests.length];
  shownCount.textContent = some === all ? counted(all, "test") : `${grouped(String(some))} of ${counted(all, "test")}`;
}

function trendsSection() {
  if (!page.trends.length) return null;
  return sectionOf("run", "Trends", make("ul", { class: "stack" }, page.trends.map((trend) => {
    const links = trend.tests.filter((id) => byName.has(id)).map((id) => make("li", null, make("a", { class: "id", href: addressOf({ test: id }) }, id)));
    return make("li", { class: "panel stack" },
      make("div", { class: "metric-head" }, badge(trend.kind, trend.worse ? "bad" : "better"), make("h3", null, trend.title)),
      trend.detail.map((line) => make("p", { class: "sentence quiet" }, line)),
      links.length > 3 ? opened(counted(links.length, "test"), () => make("ul", null, links)) : make("ul", null, links),
      trend.command ? command(trend.command) : null);
  })));
}

function differencesSection() {
  if (!page.differences.length) return null;
  return sectionOf("run", "What is different from the runs before", make("div", { class: "panel" }, listing([
    ["What", (difference) => difference.name],
    ["Before", (difference) => difference.before],
    ["Now", (difference) => difference.now],
    ["", (difference) => difference.note],
  ], page.differences)));
}

function sweepSection(sweep) {
  const axes = [...new Set(sweep.points.flatMap((point) => point.axes.map(([name]) => name)))];
  return make("div", { class: "panel stack" }, make("h3", null, sweep.name),
    sweep.summary ? make("p", { class: "sentence" }, sweep.summary) : null, listing([
      ...axes.map((axis) => [axis, (point) => point.axes.find(([name]) => name === axis)?.[1] ?? ""]),
      ...sweep.metrics.map((column, place) => [column.name, (point) => (point.values[place] === null ? "–" : amount(column, point.values[place])), "number"]),
      ["", (point) => [point.best ? "best" : "", point.note].filter(Boolean).join("; ")],
      ["Test", (point) => (byName.has(point.test) ? make("a", { href: addressOf({ test: point.test }) }, "open") : "")],
    ], sweep.points));
}
