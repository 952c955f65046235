// The steps of optimizing a test, and what each did.

const TONES_OF_STEPS = { KEEP: "good", REVERT: "none" };

// The steps of tests that have no page of their own here are told whole, others by a link.
function journalsSection() {
  if (!page.journals.length) return null;
  const alone = page.journals.filter((journal) => !byName.has(journal.test));
  return sectionOf("run", "Optimization steps", make("div", { class: "panel stack" },
    listing([
      ["Test", (journal) => (byName.has(journal.test) ? make("a", { class: "id", href: addressOf({ test: journal.test }) }, journal.test) : journal.test)],
      ["Metric", (journal) => journal.metric],
      ["First", (journal) => amount(journal, journal.first), "number"],
      ["Now", (journal) => amount(journal, journal.now), "number"],
      ["Change", (journal) => signedPercent(journal.now / journal.first - 1), "number"],
      ["Kept", (journal) => `${journal.steps.filter((step) => step.kept).length} of ${counted(journal.steps.length, "step")}`],
    ], page.journals),
    alone.map(journalPanel)));
}

function journalOf(test) {
  const own = page.journals.filter((journal) => journal.test === test.id);
  return own.length ? section("Optimization steps", make("div", { class: "panel stack" }, own.map(journalPanel))) : null;
}

function journalPanel(journal) {
  const title = [journal.metric, byName.has(journal.test) ? "" : ` of ${journal.test}`, ", step by step"].join("");
  return make("div", { class: "stack" }, make("h4", null, title),
    listing([
      ["Step", (step) => step.message],
      ["Answer", (step) => badge(step.decision, TONES_OF_STEPS[step.decision] ?? "unsure")],
      ["Effect", (step) => fraction(step.change), "number"],
      ["Interval", (step) => (step.low === null ? "–" : `${signedPercent(step.low)} to ${signedPercent(step.high)}`), "number"],
      ["Device", (step) => fraction(step.device), "number"],
      ["Accuracy", (step) => (step.accuracy === null ? "–" : accuracy(step.accuracy)), "number"],
      ["Why", (step) => step.why],
    ], journal.steps),
    journal.remaining.map((line) => make("p", { class: "sentence" }, line)));
}

const fraction = (value) => (value === null ? "–" : signedPercent(value));
