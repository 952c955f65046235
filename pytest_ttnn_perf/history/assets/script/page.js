// What the checklist says of a test: first whether to trust it and its output, then what saves most.

function findingsSections(test) {
  const of = (state) => test.findings.filter((finding) => finding.state === state);
  const items = (findings) => make("ol", { class: "stack" }, findings.map(findingItem));
  const found = of("found").sort((one, other) => other.fails - one.fails);
  const [doubts, savings] = [found.filter(isDoubt), found.filter((finding) => !isDoubt(finding))];
  const others = Object.entries({ waived: of("waived").length, "without data": test.rules.NOT_MEASURED ?? 0 }).map(([name, count]) =>
    (count ? opened(`${counted(count, "rule")} ${name}`, () => items(of(name))) : null));
  const nothing = `No findings. ${counted(test.rules.CLEAN ?? 0, "rule")} checked, ${test.rules.NOT_MEASURED ?? 0} without data.`;
  return [
    doubts.length ? section("Can these numbers be trusted?", make("div", { class: "panel" }, items(doubts))) : null,
    Object.keys(test.rules).length ? section("What could be faster", make("div", { class: "panel stack" },
      savings.length ? items(savings) : make("p", { class: "quiet" }, found.length ? "No other findings." : nothing), others)) : null,
  ];
}

const isDoubt = (finding) => /^TTP[09]/.test(finding.code);

function findingItem(finding) {
  const code = make("code", { class: finding.fails ? "bad" : "" }, finding.code);
  const saving = finding.saving ? make("p", null, make("b", { class: "better" }, `saves ${finding.saving}`), make("span", { class: "quiet" }, finding.how ? `: ${finding.how}` : "")) : null;
  return make("li", { class: "finding" },
    make("div", null, page.rules[finding.code] ? make("a", { href: addressOf({ rule: finding.code }) }, code) : code, " ", prose(finding.title),
      finding.fails ? [" ", badge("fails the test", "bad")] : null, finding.region ? make("span", { class: "quiet" }, ` in ${finding.region}`) : null),
    saving,
    make("ul", null, finding.evidence.map((line) => make("li", null, prose(line)))),
    finding.fix ? make("p", { class: "fix" }, "→ ", prose(finding.fix)) : null);
}

// The page of a rule, as `ttnn-perf rules CODE` prints it.
function ruleView(code) {
  const blocks = page.rules[code].split(/\n\n|(?<=^## .*)\n/m);
  return make("article", { "aria-label": code },
    make("nav", { class: "crumbs" }, make("a", { href: addressOf({ rule: "" }) }, "← Back")),
    make("div", { class: "panel stack rule" }, make("h2", { tabindex: -1 }, code),
      blocks.map((block) => (block.startsWith("## ") ? make("h3", null, block.slice(3)) : make("p", null, prose(block))))));
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
  const rest = more > 0 ? make("p", { class: "quiet" }, `${counted(more, "more failed test")}, first in the table`) : null;
  return section(`${counted(failed.length, "test")} failed`, list, rest);
}

function failureItem(test) {
  return make("li", { class: "panel" },
    make("div", { class: "line" }, badge(test.outcome, "bad"),
      make("a", { class: "id", href: addressOf({ test: test.id }) }, make("bdi", null, test.id)),
      make("span", { class: "quiet" }, keyOf(test))),
    make("p", { class: "sentence" }, test.summary),
    test.by_op ? make("p", { class: "sentence quiet" }, test.by_op) : null,
    test.commands.map(command));
}

// The table of tests, or of captures, which have no verdicts.

const ofCaptures = page.tone === "plain";
const noun = ofCaptures ? "capture" : "test";
const capital = (word) => word[0].toUpperCase() + word.slice(1);
const tableView = { rows: [], columns: [], body: null };

const levelOf = (name) => (metric) => (metric && metric[name] !== null ? amount(metric, metric[name]) : null);
const changeOf = (metric) => (metric && metric.change !== null ? make("span", { class: toneOf(metric.outcome) }, signedPercent(metric.change)) : null);
// The columns of metrics, in the table of tests and in that of one test.
const METRIC_COLUMNS = [["Baseline", levelOf("baseline"), "baseline number"], ["Now", levelOf("value"), "number"], ["Change", changeOf, "change number"],
  ["Limit", levelOf("limit"), "limit number"], ["History", (metric) => metric && sparkline(metric, toneOf(metric.outcome)), "trend"]];
const keyOf = (test) => (new Set(page.tests.map((each) => each.key)).size > 1 ? test.key : null);

// Of tests: what comes first has the least of what a column sorts by; columns without anything are left out.
const COLUMNS = [
  ["Verdict", (test) => (ofCaptures ? null : badge(test.outcome, toneOfTest(test))), "outcome", (test) => test.worst],
  [capital(noun), (test) => make("a", { class: "id", href: addressOf({ test: test.id }), title: test.id }, make("bdi", null, idParts(test.id)[byFile() ? 1 : 2])), "test", (test) => test.id],
  ["Hardware", keyOf, "key quiet"],
  ["Metric", (test) => mainMetric(test)?.name ?? null, "metric quiet"],
  ...METRIC_COLUMNS.map(([text, cell, kind]) => [text, (test) => cell(mainMetric(test)), kind,
    text === "Change" ? (test) => -Math.abs(mainMetric(test)?.change ?? 0) : null]),
  ["Possible saving", (test) => (largestSaving(test) ? duration(largestSaving(test)) : null), "saving number quiet", (test) => -largestSaving(test)],
].map(([text, cell, kind, sort]) => ({ text, cell, kind, sort, name: text.split(" ").at(-1).toLowerCase() }));

const searchText = (test) => [test.id, test.key, test.outcome, test.summary, ...test.setting.flat()].join("\n").toLowerCase();

function chosenTests() {
  const words = state.search.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = page.tests.filter((test) =>
    (!state.outcome || test.outcome === state.outcome) &&
    words.every((word) => searchText(test).includes(word)));
  const [column, reverse] = sortOf();
  const keys = new Map(chosen.map((test) => [test, column.sort(test)]));
  // Of equal ones, the page has the worse first.
  const places = new Map(page.tests.map((test, place) => [test, place]));
  const order = (one, other) => compared(keys.get(one), keys.get(other)) || places.get(one) - places.get(other);
  chosen.sort(reverse ? (one, other) => order(other, one) : order);
  return chosen;
}

const compared = (one, other) => (one < other ? -1 : one > other ? 1 : 0);

function sortOf() {
  const [, minus, column] = /^(-?)(.*)$/.exec(state.sort);
  const found = COLUMNS.find(({ name, sort }) => sort && name === column);
  return found ? [found, minus === "-"] : [COLUMNS[0], false];
}

// In these orders, tests of a file stand together, under its name.
const byFile = () => ["verdict", "test"].includes(sortOf()[0].name);

function testTable() {
  tableView.body = make("tbody", { role: "rowgroup" });
  const table = make("table", { class: "tests", role: "table", "aria-label": capital(`${noun}s`) }, make("thead", { role: "rowgroup" }, make("tr", { role: "row" })), tableView.body);
  tableView.body.addEventListener("click", (event) => {
    const row = event.target.closest("tr[data-place]");
    if (row && !event.target.closest("a")) go({ test: tableView.rows[row.dataset.place].id });
  });
  return table;
}

function tableHeads() {
  const [sorted, reverse] = sortOf();
  return tableView.columns.map((column) => {
    const { text, kind, sort, name } = column;
    const on = column === sorted;
    const next = `${on && !reverse ? "-" : ""}${name}`;
    const button = make("button", { type: "button", "data-sort": name, disabled: !sort, onclick: () => go({ sort: next === "verdict" ? "" : next }) }, text, on ? (reverse ? " ↑" : " ↓") : "");
    return make("th", { class: kind, scope: "col", role: "columnheader", "aria-sort": sort ? (on ? (reverse ? "descending" : "ascending") : "none") : null }, button);
  });
}

function refreshTable() {
  tableView.rows = chosenTests();
  tableView.columns = COLUMNS.filter(({ cell }) => page.tests.some((test) => cell(test) !== null));
  const head = tableView.body.parentElement.querySelector("thead tr");
  const focused = document.activeElement?.dataset?.sort;
  head.replaceChildren(...tableHeads());
  if (focused) head.querySelector(`[data-sort="${focused}"]`)?.focus();
  const whole = (kind, ...content) => make("tr", { class: "space", role: "row" }, make("td", { colspan: tableView.columns.length, class: kind, role: "cell" }, content));
  const rows = tableView.rows.flatMap((test, place) => {
    const [file] = idParts(test.id);
    const known = place ? idParts(tableView.rows[place - 1].id)[0] : "";
    return [byFile() && file !== known ? whole("file id", make("bdi", null, file || ".")) : null, testRow(test, place)].filter(Boolean);
  });
  if (!rows.length) rows.push(whole("empty quiet", `No ${noun}s match. `, make("a", { href: addressOf(EMPTY) }, "Clear filters")));
  tableView.body.replaceChildren(...rows);
}

// An id as its file, the test in it, and both; that of a capture as its folder and file.
function idParts(id) {
  const end = id.indexOf("::");
  const cut = end < 0 ? id.lastIndexOf("/") : end;
  return [id.slice(0, Math.max(0, cut)), id.slice(end < 0 ? cut + 1 : end + 2), id];
}

const testRow = (test, place) => make("tr", { role: "row", "data-place": place },
  tableView.columns.map(({ kind, cell }) => make("td", { class: kind, role: "cell" }, cell(test))));

// One test: its verdict and what to do, then its numbers, then where its time goes.

function testView(test) {
  const order = tableView.rows;
  const place = order.indexOf(test);
  const beside = (step, text) => {
    const other = place < 0 ? undefined : order[place + step];
    return other ? make("a", { href: addressOf({ test: other.id }), title: other.id }, text) : null;
  };
  return make("article", { "aria-label": test.id },
    alone ? null : make("nav", { class: "crumbs", "aria-label": capital(`${noun}s`) }, make("a", { href: addressOf({ test: "" }) }, `← All ${noun}s`), beside(-1, "Previous"), beside(1, "Next"),
      place < 0 ? null : make("span", { class: "quiet" }, `${place + 1} of ${order.length}`)),
    testHead(test),
    metricsSection(test),
    test.waterfalls.length ? section("Change by op", make("div", { class: "even panel" }, test.waterfalls.map(waterfallChart))) : null,
    findingsSections(test),
    test.regions.map(regionSection),
    test.regions.length ? null : section("Time by op", make("p", { class: "quiet" }, "No ops recorded here. They need a Tracy build of ttnn, or ", make("code", null, "attach"), ".")),
    ungatedSection(test));
}

function testHead(test) {
  return make("header", { class: "test-head panel" },
    make("div", { class: "metric-head" }, test.outcome === "RECORDED" ? null : badge(test.outcome, toneOfTest(test)), make("span", { class: "quiet" }, keyOf(test))),
    make("h2", { tabindex: -1 }, make("bdi", null, test.id)),
    test.setting.length ? make("ul", { class: "setting", "aria-label": "Setting" }, test.setting.map(([name, value]) => make("li", null, `${name} ${value}`))) : null,
    test.summary ? make("p", { class: "sentence" }, test.summary) : null,
    test.by_op ? make("p", { class: "sentence" }, test.by_op) : null,
    test.commands.map(command));
}

// All numbers in one table; charts of the worst metric and of each other that is not as before.
function metricsSection(test) {
  const first = mainMetric(test);
  const gated = test.metrics.filter((metric) => metric.gated).sort((one, other) => (other === first) - (one === first));
  if (!gated.length) return null;
  const isQuiet = (metric) => metric !== first && ["good", "none"].includes(toneOf(metric.outcome));
  const quiet = gated.filter(isQuiet);
  const panels = (metrics) => make("div", { class: "stack" }, metrics.map((metric) => metricPanel(metric, test.summary)));
  return section("Metrics", make("div", { class: "stack" },
    make("div", { class: "panel" }, listing([["Verdict", (metric) => badge(metric.outcome, toneOf(metric.outcome)), "outcome"], ["Metric", (metric) => metric.name],
      ...METRIC_COLUMNS, ["Target", levelOf("target"), "number"]], gated)),
    page.runs.length && gated.every((metric) => metric.history.values.length < 2) ? make("p", { class: "quiet" }, "First recorded run: the history starts with the next one.") : null,
    panels(gated.filter((metric) => !isQuiet(metric))),
    quiet.length ? opened(`Charts of ${counted(quiet.length, "other metric")}`, () => panels(quiet)) : null));
}

function ungatedSection(test) {
  const others = test.metrics.filter((metric) => !metric.gated);
  if (!others.length) return null;
  return opened(`${counted(others.length, "metric")} not gated`, () => make("div", { class: "stack" },
    make("div", { class: "panel" }, listing([["Metric", (metric) => metric.name], ...METRIC_COLUMNS, ["Why not gated", (metric) => metric.why_ungated]], others)),
    others.filter((metric) => metric.samples.length > 1 || metric.history.values.length > 1).map((metric) => metricPanel(metric))));
}

// `told` is what was said already.
function metricPanel(metric, told = "") {
  const charts = [historyChart(metric), samplesChart(metric)].filter(Boolean);
  return make("div", { class: "panel stack", "data-metric": metric.name },
    make("div", { class: "metric-head" }, make("h3", null, metric.name), metric.gated ? badge(metric.outcome, toneOf(metric.outcome)) : null,
      make("span", { class: "quiet" }, metric.better === "equal" ? "must stay equal" : `${metric.better} is better`)),
    metric.sentence && !told.startsWith(metric.sentence) ? make("p", { class: "sentence" }, metric.sentence) : null,
    charts.length ? make("div", { class: "pair" }, charts) : null);
}

function regionSection(region) {
  const charts = [treemapChart(region), rooflineChart(region)];
  const told = `${duration(region.time_us)} per call`;
  return section(region.name ? `Time by op in ${region.name}` : "Time by op", make("div", { class: "panel stack" },
    make("p", { class: "quiet" }, [told, region.bottleneck].filter(Boolean).join(". ")),
    make("div", { class: "even" }, charts)));
}

// All tests: what failed, the table with its filters, and what is true of the run as a whole.

const search = make("input", { type: "search", placeholder: `Search ${noun}s`, "aria-label": `Search ${noun}s`, autocomplete: "off", spellcheck: "false" });
const shownCount = make("span", { class: "quiet", role: "status" });

function overview() {
  search.addEventListener("input", () => goOn({ search: search.value.trim() ? search.value : "", test: "" }));
  const tools = make("div", { class: "tools", role: "search" }, search,
    outcomeChips(), shownCount);
  return make("div", { id: "overview" },
    attentionSection(),
    make("section", { id: "tests" }, make("h2", null, capital(`${noun}s`)), tools, testTable()));
}

// Buttons that show the tests of one outcome, with their number; nothing where all have one.
function outcomeChips() {
  const byWorst = [...page.tests].sort((one, other) => one.worst - other.worst);
  const words = [...new Set(byWorst.map((test) => test.outcome))];
  if (words.length < 2) return null;
  return make("div", { class: "chips", role: "group", "aria-label": "Outcome" }, words.map((word) => {
    const tests = page.tests.filter((test) => test.outcome === word);
    const tone = tests.some((test) => test.failed) ? "bad" : toneOf(word);
    const button = make("button", { type: "button", class: tone, "aria-pressed": "false", "data-outcome": word }, make("b", null, tests.length), ` ${word}`);
    button.addEventListener("click", () => go({ outcome: state.outcome === word ? "" : word, test: "" }));
    return button;
  }));
}

function refreshTools() {
  if (document.activeElement !== search) search.value = state.search;
  for (const button of document.querySelectorAll("[data-outcome]")) button.setAttribute("aria-pressed", button.dataset.outcome === state.outcome);
  const [some, all] = [tableView.rows.length, page.tests.length];
  shownCount.textContent = some === all ? counted(all, noun) : `${some} of ${counted(all, noun)}`;
}

function differencesSection() {
  if (!page.differences.length) return null;
  return section("Environment: different from the baselines", make("div", { class: "panel" }, listing([
    ["What", ([name]) => name],
    ["Baseline", ([, before]) => before],
    ["Now", ([, , now]) => now],
  ], page.differences)));
}

// Puts the page together, and shows what its address says; a single test opens by itself.

const place = make("div", { id: "test" });
const wholeRun = overview();
const changes = make("div", null, differencesSection());
const alone = page.tests.length === 1 ? page.tests[0] : null;
let listScroll = 0;
let shown = null;

function show() {
  state = stateOfAddress();
  const test = byId.get(state.test) ?? alone;
  const rule = page.rules[state.rule] ? state.rule : "";
  refreshTable();
  refreshTools();
  const now = rule || test?.id || "";
  if (now === shown) return;
  if (shown === "") listScroll = scrollY;
  place.replaceChildren(...(rule ? [ruleView(rule)] : test ? [testView(test)] : []));
  wholeRun.hidden = now !== "";
  changes.hidden = now !== "" && (rule !== "" || !alone);
  document.title = rule || (test && !alone) ? `${now} · ${page.title}` : page.title;
  if (rule || (test && !alone)) {
    place.scrollIntoView({ behavior: "instant" });
    place.querySelector("h2").focus({ preventScroll: true });
  } else if (shown !== null) {
    scrollTo({ top: listScroll, behavior: "instant" });
  }
  shown = now;
}

history.scrollRestoration = "manual";
for (const time of document.querySelectorAll("time")) {
  time.title = `${time.dateTime} (UTC)`;
  time.textContent = moment(time.dateTime);
}
document.getElementById("main").append(wholeRun, place, changes);
document.body.append(tip);
show();
addEventListener("hashchange", show);
