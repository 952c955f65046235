// What the checklist says of a test, what saves most first.

const STATES = ["found", "waived", "not measured"];

function findingsSection(test) {
  if (!test.findings.length) return null;
  const found = test.findings.filter((finding) => finding.state === "found").sort((one, other) => other.fails - one.fails);
  const others = STATES.slice(1).map((state) => {
    const those = test.findings.filter((finding) => finding.state === state);
    return those.length ? opened(`${those.length} ${state}`, () => make("ul", { class: "stack" }, those.map(findingItem))) : null;
  });
  return section("Checklist", make("div", { class: "panel stack" },
    found.length ? make("ol", { class: "stack ranked" }, found.map(findingItem)) : make("p", { class: "quiet" }, "Nothing was found."),
    others));
}

function findingItem(finding) {
  const share = finding.share === null ? "" : `, ${percent(finding.share)} of the region`;
  const saving = finding.saving_us === null ? null : make("b", { class: "better" }, `saves up to ${microseconds(finding.saving_us)}${share}`);
  return make("li", { class: "finding" },
    make("div", { class: "metric-head" },
      make("code", { class: finding.fails ? "bad" : "" }, finding.code), make("span", null, finding.title),
      finding.fails ? badge("fails the test", "bad") : null),
    saving ? make("div", { class: "metric-head" }, saving, finding.region ? make("span", { class: "quiet" }, `in ${finding.region}`) : null) : null,
    finding.evidence.length ? make("ul", null, finding.evidence.map((line) => make("li", null, line))) : null,
    finding.fix.length ? make("ul", { class: "fix" }, finding.fix.map((line) => make("li", null, line))) : null);
}

// The saving of the finding that would save most: savings overlap, so they are not added.
const largestSaving = (test) => Math.max(0, ...test.findings.filter((finding) => finding.state === "found").map((finding) => finding.saving_us ?? 0));

// What failed: the sentence, and the commands that accept it or look closer.

const FAILURES_TOLD = 5;

function attentionSection() {
  const failed = page.tests.filter((test) => test.failed).sort((one, other) => one.worst - other.worst);
  if (!failed.length) return null;
  const more = failed.length - FAILURES_TOLD;
  const list = make("ul", { class: "stack attention" }, failed.slice(0, FAILURES_TOLD).map(failureItem));
  const rest = more > 0 ? make("p", { class: "quiet" }, `${counted(more, "more failed test")}: they are first in the table.`) : null;
  return section(`Failed: ${counted(failed.length, "test")}`, list, rest);
}

function failureItem(test) {
  return make("li", { class: "panel" },
    make("div", { class: "line" }, badge(test.outcome, "bad"),
      make("a", { class: "id", href: addressOf({ test: test.id }) }, make("bdi", null, test.id)),
      make("span", { class: "quiet" }, test.key)),
    make("p", { class: "sentence" }, test.summary),
    test.by_op ? make("p", { class: "sentence quiet" }, test.by_op) : null,
    test.commands.map(command));
}

// The table of tests.

const tableView = { rows: [], body: null };

// Columns that sort: what comes first has the least of these.
const SORTS = {
  outcome: (test) => test.worst,
  test: (test) => test.id,
  metric: (test) => mainMetric(test)?.name ?? "",
  change: (test) => -Math.abs(mainMetric(test)?.change ?? 0),
  saving: (test) => -largestSaving(test),
};

const searchText = (test) => [test.id, test.key, test.outcome, test.summary, ...test.setting.flat()].join("\n").toLowerCase();

function chosenTests() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = page.tests.filter((test) =>
    (!state.outcome || test.outcome === state.outcome) &&
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
    if (row && !event.target.closest("a")) go({ test: tableView.rows[row.dataset.place].id });
  });
  return table;
}

function tableHeads() {
  const [column, reverse] = sortOf();
  const head = (kind, text, sorts, more = "") => {
    const on = column === sorts;
    const sort = sorts ? { "aria-sort": on ? (reverse ? "descending" : "ascending") : "none" } : {};
    const next = on && !reverse ? `-${sorts}` : sorts;
    const choose = { "data-sort": sorts, disabled: !sorts, onclick: () => go({ sort: next === "outcome" ? "" : next }) };
    const button = make("button", { type: "button", ...choose }, text, on ? (reverse ? " ↑" : " ↓") : "");
    return make("th", { class: `${kind} ${more}`, scope: "col", role: "columnheader", ...sort }, button);
  };
  return [head("outcome", "Outcome", "outcome"), head("test", "Test", "test"), head("metric", "Metric", "metric"), head("value", "Value", "", "number"),
    head("change", "To baseline", "change", "number"), head("trend", "History", ""), head("saving", "Could save", "saving", "number")];
}

function refreshTable() {
  tableView.rows = chosenTests();
  const head = tableView.body.parentElement.querySelector("thead tr");
  const focused = document.activeElement?.dataset?.sort;
  head.replaceChildren(...tableHeads());
  if (focused) head.querySelector(`[data-sort="${focused}"]`)?.focus();
  const nothing = () => make("tr", { class: "space" }, make("td", { colspan: 7, class: "empty quiet" },
    "No test is like this. ", make("a", { href: addressOf({ ...EMPTY }) || "#" }, "Show all")));
  tableView.body.replaceChildren(...(tableView.rows.length ? tableView.rows.map(testRow) : [nothing()]));
}

// An id as its folder and file, and the test in it; that of a capture as its folder and file.
function idParts(id) {
  const end = id.indexOf("::");
  const cut = end < 0 ? id.lastIndexOf("/") + 1 : end + 2;
  return [cut ? make("bdi", { class: "folder" }, id.slice(0, cut)) : null, make("bdi", { class: "name" }, id.slice(cut))];
}

function testRow(test, place) {
  const metric = mainMetric(test);
  const change = metric?.change ?? null;
  const saving = largestSaving(test);
  const cell = (kind, ...content) => make("td", { class: kind, role: "cell" }, content);
  return make("tr", { role: "row", "data-place": place },
    cell("outcome", badge(test.outcome, toneOfTest(test))),
    cell("test", make("div", { class: "line" }, make("a", { class: "id", href: addressOf({ test: test.id }), title: test.id }, idParts(test.id)), make("small", null, test.key))),
    cell("metric quiet", metric?.name ?? ""),
    cell("value number", metric ? amount(metric, metric.value) : ""),
    cell(`change number ${metric ? toneOf(metric.outcome) : ""}`, change === null ? "" : signedPercent(change)),
    cell("trend", metric ? sparkline(metric, toneOf(metric.outcome)) : null),
    cell("saving number quiet", saving ? microseconds(saving) : ""));
}

// One test: its verdict and what to do, then its numbers, then where its time goes.

function testView(test) {
  const order = tableView.rows;
  const place = order.indexOf(test);
  const beside = (step, text) => {
    const other = place < 0 ? undefined : order[place + step];
    return other ? make("a", { href: addressOf({ test: other.id }), title: other.id }, text) : null;
  };
  return make("article", { "aria-label": test.id },
    make("nav", { class: "crumbs", "aria-label": "Tests" }, make("a", { href: addressOf({ test: "" }) }, "← All tests"), beside(-1, "Previous"), beside(1, "Next"),
      place < 0 ? null : make("span", { class: "quiet" }, `${place + 1} of ${order.length}`)),
    testHead(test),
    metricsSection(test),
    test.waterfalls.length ? section("What changed", make("div", { class: "even panel" }, test.waterfalls.map(waterfallChart))) : null,
    findingsSection(test),
    test.regions.map(regionSection),
    timelinesSection(test));
}

function testHead(test) {
  return make("header", { class: "test-head panel" },
    make("div", { class: "metric-head" }, badge(test.outcome, toneOfTest(test)), make("span", { class: "quiet" }, test.key)),
    make("h2", { tabindex: -1 }, make("bdi", null, test.id)),
    test.setting.length ? make("ul", { class: "setting", "aria-label": "Setting" }, test.setting.map(([name, value]) => make("li", null, `${name} ${value}`))) : null,
    test.summary ? make("p", { class: "sentence" }, test.summary) : null,
    test.by_op ? make("p", { class: "sentence" }, test.by_op) : null,
    test.commands.map(command));
}

function metricsSection(test) {
  if (!test.metrics.length) return null;
  const [gated, others] = [test.metrics.filter((metric) => metric.gated), test.metrics.filter((metric) => !metric.gated)];
  const first = mainMetric(test);
  gated.sort((one, other) => (other === first) - (one === first));
  const more = others.length ? opened(`${counted(others.length, "metric")} without a verdict`, () => make("div", { class: "stack" }, others.map((metric) => metricPanel(metric)))) : null;
  return section("Metrics", make("div", { class: "stack" }, gated.map((metric) => metricPanel(metric, test.summary)), more));
}

// `told` is what was said already.
function metricPanel(metric, told = "") {
  const facts = [
    metric.change === null ? "" : `${signedPercent(metric.change)} to the baseline`,
    metric.baseline === null ? "" : `baseline ${amount(metric, metric.baseline)}`,
    metric.limit === null ? "" : `limit ${amount(metric, metric.limit)}`,
    metric.target === null ? "" : `target ${amount(metric, metric.target)}`,
    metric.better === "equal" ? "must stay equal" : `${metric.better} is better`,
  ].filter(Boolean).join(" · ");
  const charts = [historyChart(metric), samplesChart(metric)].filter(Boolean);
  return make("div", { class: "panel stack", "data-metric": metric.name },
    make("div", { class: "metric-head" }, make("h3", null, metric.name), metric.gated ? badge(metric.outcome, toneOf(metric.outcome)) : null,
      make("b", null, amount(metric, metric.value)), make("span", { class: "quiet" }, facts)),
    metric.sentence && metric.sentence !== told ? make("p", { class: "sentence" }, metric.sentence) : null,
    metric.why_ungated ? make("p", { class: "quiet" }, `Not gated: ${metric.why_ungated}`) : null,
    charts.length ? make("div", { class: "pair" }, charts) : null);
}

function regionSection(region) {
  const charts = [treemapChart(region), rooflineChart(region)].filter(Boolean);
  const told = `${microseconds(region.time_us)} per call`;
  return section(region.name ? `Region ${region.name}` : "Where the time goes", make("div", { class: "panel stack" },
    make("p", { class: "quiet" }, [told, region.bottleneck].filter(Boolean).join(". ")),
    charts.length ? make("div", { class: "even" }, charts) : make("p", { class: "quiet" }, "No op of it was captured.")));
}

function timelinesSection(test) {
  const charts = test.timelines.map(timelineChart).filter(Boolean);
  return charts.length ? section("Devices over time", make("div", { class: "panel stack" }, charts)) : null;
}

// All tests: what failed, the table with its filters, and what is true of the run as a whole.

const search = make("input", { type: "search", placeholder: "Search tests", "aria-label": "Search tests", autocomplete: "off", spellcheck: "false" });
const shownCount = make("span", { class: "quiet", role: "status" });

function overview() {
  search.addEventListener("input", () => goOn({ search: search.value.trim() ? search.value : "", test: "" }));
  const tools = make("div", { class: "tools", role: "search" }, search,
    outcomeChips(), shownCount);
  return make("div", { id: "overview" },
    attentionSection(),
    make("section", { id: "tests" }, make("h2", null, "Tests"), tools, testTable()),
    trendsSection(),
    differencesSection());
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
  for (const button of document.querySelectorAll("[data-outcome]")) button.setAttribute("aria-pressed", button.dataset.outcome === state.outcome);
  const [some, all] = [tableView.rows.length, page.tests.length];
  shownCount.textContent = some === all ? counted(all, "test") : `${grouped(String(some))} of ${counted(all, "test")}`;
}

function trendsSection() {
  if (!page.trends.length) return null;
  return section("Trends", make("ul", { class: "stack" }, page.trends.map((trend) => {
    const links = trend.tests.filter((id) => byId.has(id)).map((id) => make("li", null, make("a", { class: "id", href: addressOf({ test: id }) }, id)));
    return make("li", { class: "panel stack" },
      make("div", { class: "metric-head" }, badge(trend.kind, trend.worse ? "bad" : "better"), make("h3", null, trend.title)),
      trend.detail.map((line) => make("p", { class: "sentence quiet" }, line)),
      links.length > 3 ? opened(counted(links.length, "test"), () => make("ul", null, links)) : make("ul", null, links),
      trend.command ? command(trend.command) : null);
  })));
}

function differencesSection() {
  if (!page.differences.length) return null;
  return section("What is different from the runs before", make("div", { class: "panel" }, listing([
    ["What", (difference) => difference.name],
    ["Before", (difference) => difference.before],
    ["Now", (difference) => difference.now],
  ], page.differences)));
}

// Puts the page together, and shows what its address says.

const testPlace = make("div", { id: "test" });
const wholeRun = overview();
let listScroll = 0;
let shownTest = null;

function show() {
  state = stateOfAddress();
  const test = byId.get(state.test) ?? null;
  refreshTable();
  refreshTools();
  if (test !== shownTest) showTest(test);
}

function showTest(test) {
  if (!shownTest) listScroll = scrollY;
  shownTest = test;
  testPlace.replaceChildren(...(test ? [testView(test)] : []));
  wholeRun.hidden = test !== null;
  document.title = test ? `${test.id} · ${page.title}` : page.title;
  if (test) {
    testPlace.scrollIntoView({ behavior: "instant" });
    testPlace.querySelector("h2").focus({ preventScroll: true });
  } else {
    scrollTo({ top: listScroll, behavior: "instant" });
  }
}

history.scrollRestoration = "manual";
document.getElementById("main").append(wholeRun, testPlace);
document.body.append(tip);
show();
addEventListener("hashchange", show);
