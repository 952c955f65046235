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
      make("a", { class: "id", href: addressOf({ test: names.get(test) }) }, make("bdi", null, test.id)),
      make("span", { class: "quiet" }, test.key)),
    make("p", { class: "sentence" }, whatHappened(test)),
    test.by_op ? make("p", { class: "sentence quiet" }, test.by_op) : null,
    test.commands.map(command));
}

// The summary of a test, or else what its metrics say that are not as before.
function whatHappened(test) {
  if (test.summary) return test.summary;
  return test.metrics.filter((metric) => metric.gated && metric.sentence && toneOf(metric.outcome) !== "good").map((metric) => metric.sentence).join("\n");
}
