// What the checklist says of a test, what saves most first.

const STATES = ["found", "waived", "not measured"];

function findingsSection(test) {
  if (!test.findings.length) return null;
  const saving = (finding) => finding.saving_us ?? -1;
  const found = test.findings.filter((finding) => finding.state === "found").sort((one, other) => other.fails - one.fails || saving(other) - saving(one));
  const most = Math.max(0, ...found.map(saving));
  const others = STATES.slice(1).map((state) => {
    const those = test.findings.filter((finding) => finding.state === state);
    return those.length ? opened(`${those.length} ${state}`, () => make("ul", { class: "stack" }, those.map((finding) => findingItem(finding, 0)))) : null;
  });
  return section("Checklist", make("div", { class: "panel stack" },
    found.length ? make("ol", { class: "stack ranked" }, found.map((finding) => findingItem(finding, most))) : make("p", { class: "quiet" }, "Nothing was found."),
    others));
}

function findingItem(finding, most) {
  const share = finding.share === null ? "" : `, ${percent(finding.share)} of the region`;
  const saving = finding.saving_us === null ? null : make("b", { class: "better" }, `saves up to ${microseconds(finding.saving_us)}${share}`);
  return make("li", { class: "finding" },
    make("div", { class: "metric-head" },
      make("code", { class: finding.fails ? "bad" : "" }, finding.code), make("span", null, finding.title),
      finding.fails ? badge("fails the test", "bad") : null),
    saving ? make("div", { class: "metric-head" }, saving, finding.region ? make("span", { class: "quiet" }, `in ${finding.region}`) : null) : null,
    finding.saving_us !== null && most > 0 ? savingBar(finding.saving_us / most) : null,
    finding.evidence.length ? make("ul", null, finding.evidence.map((line) => make("li", null, line))) : null,
    finding.fix.length ? make("ul", { class: "fix" }, finding.fix.map((line) => make("li", null, line))) : null);
}

function savingBar(part) {
  return make("div", { class: "bar", "aria-hidden": "true" },
    draw("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none" }, draw("rect", { x: 0, y: 0, width: 100 * part, height: 6 })));
}

// The saving of the finding that would save most: savings overlap, so they are not added.
const largestSaving = (test) => Math.max(0, ...test.findings.filter((finding) => finding.state === "found").map((finding) => finding.saving_us ?? 0));
