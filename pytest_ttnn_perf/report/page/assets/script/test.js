// One test: its verdict and what to do, then its numbers, then where its time goes.

function testView(test) {
  const order = tableView.rows;
  const place = order.indexOf(test);
  const beside = (step, text) => {
    const other = place < 0 ? undefined : order[place + step];
    return other ? make("a", { href: addressOf({ test: names.get(other) }), title: other.id }, text) : null;
  };
  return make("article", { "aria-label": test.id },
    make("nav", { class: "crumbs", "aria-label": "Tests" }, make("a", { href: addressOf({ test: "" }) }, "← All tests"), beside(-1, "Previous"), beside(1, "Next"),
      place < 0 ? null : make("span", { class: "quiet" }, `${place + 1} of ${order.length}`)),
    testHead(test),
    metricsSection(test),
    test.waterfalls.length ? section("What changed", make("div", { class: "even panel" }, test.waterfalls.map(waterfallChart))) : null,
    journalOf(test),
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
    test.commands.map(command),
    test.visualizer ? make("div", { class: "stack" }, make("span", { class: "quiet" }, "Open the report in ttnn-visualizer:"), command(test.visualizer)) : null,
    test.trace ? traceLink(test.trace) : null);
}

// A link to a file beside the page; anything else than a file or a page is no link.
function traceLink(trace) {
  const address = URL.canParse(trace, document.baseURI) ? new URL(trace, document.baseURI) : null;
  if (!address || !["file:", "http:", "https:"].includes(address.protocol)) return make("p", null, `Trace: ${trace}`);
  return make("p", null, make("a", { href: trace, download: "" }, `Trace: ${trace}`), make("span", { class: "quiet" }, " (open it at "),
    make("a", { href: "https://ui.perfetto.dev", rel: "noreferrer" }, "ui.perfetto.dev"), make("span", { class: "quiet" }, ")"));
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
  const told = `${microseconds(region.time_us)} per call, ${counted(region.calls, "call")}`;
  return section(region.name ? `Region ${region.name}` : "Where the time goes", make("div", { class: "panel stack" },
    make("p", { class: "quiet" }, [told, region.bottleneck].filter(Boolean).join(". ")),
    charts.length ? make("div", { class: "even" }, charts) : make("p", { class: "quiet" }, "No op of it was captured.")));
}

function timelinesSection(test) {
  const charts = test.timelines.map(timelineChart).filter(Boolean);
  return charts.length ? section("Devices over time", make("div", { class: "panel stack" }, charts)) : null;
}
