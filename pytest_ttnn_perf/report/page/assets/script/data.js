// What the page shows, as written into it. Records have the names and units of contents.py.
// Tests and metrics lack what is as in most of them: that is written once.
const { page, tones, defaults } = JSON.parse(document.getElementById("data").textContent);
page.tests = page.tests.map((test) => {
  const whole = { ...defaults.PageTest, ...test };
  return { ...whole, metrics: whole.metrics.map((metric) => ({ ...defaults.PageMetric, ...metric })) };
});

const toneOf = (outcome) => tones[outcome.toUpperCase().replaceAll(" ", "_")] ?? "none";
const toneOfTest = (test) => (test.failed ? "bad" : toneOf(test.outcome));
const mainMetric = (test) => (test.main === null ? null : test.metrics[test.main]);

// The columns of a history, which are written as [value, count] for equal values in a row.
function pointsOf(history) {
  const repeated = (column) => column.flatMap(([value, count]) => Array(count).fill(value));
  const ahead = repeated(history.runs_ahead);
  const outcomes = repeated(history.outcomes);
  const marks = repeated(history.marks);
  return history.values.map((value, place) => ({
    place,
    value,
    run: page.runs[place + ahead[place]],
    outcome: outcomes[place] ?? "",
    mark: marks[place] ?? "",
  }));
}

// What a link calls each test: its id, and more where several have the same.
const names = new Map();
const byName = new Map();
for (const test of page.tests) {
  let name = test.id;
  if (byName.has(name)) name = `${test.id} @ ${test.key}`;
  for (let again = 2; byName.has(name); again += 1) name = `${test.id} @ ${test.key} #${again}`;
  byName.set(name, test);
  names.set(test, name);
}
