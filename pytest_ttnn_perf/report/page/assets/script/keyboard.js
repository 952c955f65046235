// Keys, as in other tools for lists: the help names all of them.

const KEYS = [["/", "search"], ["j  k", "next, previous test"], ["Enter", "open the test"], ["Escape", "back to all tests; leave the search"],
  ["← →", "from point to point in a chart"], ["+ −  0", "zoom a timeline, show all of it"], ["?", "this help"]];

const help = make("dialog", { "aria-label": "Keys" }, make("h3", null, "Keys"),
  make("dl", null, KEYS.flatMap(([key, does]) => [make("dt", null, key.split("  ").map((one) => [make("kbd", null, one), " "])), make("dd", null, does)])),
  make("form", { method: "dialog" }, make("button", null, "Close")));

const showHelp = () => help.open || help.showModal();

function nextTest(step) {
  const place = tableView.rows.indexOf(byName.get(state.test));
  const other = tableView.rows[place + step];
  if (place >= 0 && other) location.replace(addressOf({ test: names.get(other) }));
}

const ACTIONS = {
  "/": () => (state.test ? go({ test: "" }) : null, setTimeout(() => search.focus())),
  "?": showHelp,
  j: () => (state.test ? nextTest(1) : moveCursor(1)),
  k: () => (state.test ? nextTest(-1) : moveCursor(-1)),
  Enter: () => {
    const test = tableView.rows[tableView.cursor];
    if (!state.test && test) go({ test: names.get(test) });
  },
  Escape: () => state.test && go({ test: "" }),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const typing = event.target.closest("input, select, textarea");
  if (typing && event.key === "Escape") return typing.blur();
  // Enter on a link or a button is what the browser does with it.
  if (typing || (event.key === "Enter" && event.target.closest("a, button, summary"))) return;
  if (!ACTIONS[event.key]) return;
  event.preventDefault();
  ACTIONS[event.key]();
}
