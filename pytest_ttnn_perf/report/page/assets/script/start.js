// Puts the page together, and shows what its address says.

const testPlace = make("div", { id: "test" });
const wholeRun = overview();
let listScroll = 0;
let shownTest = null;

function show() {
  state = stateOfAddress();
  const test = byName.get(state.test) ?? null;
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
    drawRows();
  }
}

// On paper there is no window to draw rows in.
function printed(whole) {
  tableView.whole = whole;
  fitCharts(whole);
  drawRows();
}

history.scrollRestoration = "manual";
document.getElementById("main").append(wholeRun, testPlace);
document.body.append(tip, help);
show();
addEventListener("hashchange", show);
addEventListener("scroll", drawRows, { passive: true });
addEventListener("resize", drawRows);
addEventListener("keydown", onKey);
addEventListener("beforeprint", () => printed(true));
addEventListener("afterprint", () => printed(false));
matchMedia("print").addEventListener("change", (event) => printed(event.matches));
