// A sweep: its first two metrics against one another, the points that nothing beats, and all numbers.

function sweepSection(sweep) {
  return make("div", { class: "panel stack" }, make("h3", null, sweep.name),
    sweep.summary ? make("p", { class: "sentence" }, sweep.summary) : null, sweepChart(sweep), sweepListing(sweep));
}

function sweepChart(sweep) {
  const [first, second] = sweep.metrics;
  const points = sweep.points.filter((point) => point.values[0] !== null && (!second || point.values[1] !== null));
  const missing = sweep.points.length - points.length;
  if (!first || points.length < 2) return null;
  const { figure } = chart({
    kind: "sweep",
    title: second ? `${first.name} against ${second.name}` : first.name,
    label: `${counted(points.length, "point")}, ${counted(points.filter((point) => point.frontier).length, "point")} on the frontier`,
    legend: [["point", dot(8, 5, "none")], ["on the frontier: nothing is better in both", dot(8, 5, "better")],
      ["best", draw("g", null, dot(8, 5, "better"), draw("circle", { class: "ring", cx: 8, cy: 5, r: 5 }))]],
    paint: (width) => (second ? paintFrontier(first, second, points, width) : paintSweepBars(first, points, width)),
    after: missing ? make("p", { class: "hint" }, `${counted(missing, "point")} without numbers: see the table.`) : [],
  });
  return figure;
}

const axesOf = (point) => point.axes.map(([name, value]) => `${name}=${value}`).join(", ");
const scaledValue = (column, point, place) => point.values[place] * column.scale;

function paintFrontier(first, second, points, width) {
  const height = 280;
  const [xLow, xHigh] = around(points.map((point) => scaledValue(first, point, 0)));
  const [yLow, yHigh] = around(points.map((point) => scaledValue(second, point, 1)));
  const yTicks = roundNumbers(yLow, yHigh, 5);
  const left = Math.max(...tickLabels(yTicks).map((label) => textWidth(label))) + 12;
  const box = { left, right: width - 10, top: 24, bottom: height - 36, width };
  const x = linear([xLow, xHigh], [box.left, box.right]);
  const y = linear([yLow, yHigh], [box.bottom, box.top]);
  const placed = points.map((point) => ({ point, x: x(scaledValue(first, point, 0)), y: y(scaledValue(second, point, 1)) }));
  const frontier = placed.filter(({ point }) => point.frontier).sort((one, other) => one.x - other.x);
  const called = (column) => `${column.name} (${[column.unit, `${column.better} is better`].filter(Boolean).join(", ")})`;
  return {
    height,
    shapes: [
      axisLeft(box, y, yTicks, called(second)),
      axisBottom(box, x, roundNumbers(xLow, xHigh, Math.max(2, width / 100)), called(first)),
      draw("polyline", { class: "frontier", points: frontier.map((one) => `${one.x},${one.y}`).join(" ") }),
      placed.map((one) => dot(one.x, one.y, one.point.frontier || one.point.best ? "better" : "none", 4)),
      placed.filter(({ point }) => point.best).map((one) => draw("circle", { class: "ring", cx: one.x, cy: one.y, r: 8 })),
      frontierNames(frontier, placed, box),
    ],
    points: placed.map((one) => ({ x: one.x, y: one.y, lines: pointInWords(one.point, [first, second]) })),
  };
}

function frontierNames(frontier, placed, box) {
  const taken = [...placed, ...alongLine(frontier)].map((one) => [one.x - 5, one.y - 5, one.x + 5, one.y + 5]);
  return frontier.map(({ point, x, y }) => {
    const text = fitted(axesOf(point), 160);
    const width = textWidth(text);
    const spots = [[x + 8, y + 17], [x - width - 8, y - 8], [x + 8, y - 8], [x - width - 8, y + 17]];
    return labelAt(text, spots, box, taken);
  });
}

// Places on a line, close enough that no label fits between them.
function alongLine(corners) {
  return corners.slice(1).flatMap((end, place) => {
    const start = corners[place];
    const steps = Math.ceil(Math.hypot(end.x - start.x, end.y - start.y) / 8);
    const between = (from, to, step) => from + ((to - from) * step) / steps;
    return Array.from({ length: steps }, (_, step) => ({ x: between(start.x, end.x, step), y: between(start.y, end.y, step) }));
  });
}

function paintSweepBars(column, points, width) {
  const names = Math.min(width * 0.4, Math.max(...points.map((point) => textWidth(axesOf(point)))) + 8);
  const numbers = Math.max(...points.map((point) => textWidth(amount(column, point.values[0])))) + 10;
  const box = { left: names + 4, right: width - numbers, top: 4, bottom: 4 + points.length * 20, width };
  const high = Math.max(...points.map((point) => scaledValue(column, point, 0)));
  const x = linear([0, high], [box.left, box.right]);
  const rows = points.map((point, row) => {
    const top = box.top + row * 20;
    const label = (at, text) => draw("text", { class: "strong", x: at, y: top + 14, "text-anchor": "end" }, text);
    const long = Math.max(1, x(scaledValue(column, point, 0)) - box.left);
    return [
      label(box.left - 6, fitted(axesOf(point), names - 4)),
      draw("rect", { class: `fill ${point.best ? "better" : "whole"}`, x: box.left, width: long, y: top + 3, height: 14 }),
      label(box.width - 2, amount(column, point.values[0])),
    ];
  });
  const axis = axisBottom(box, x, roundNumbers(0, high, 4), withUnit(column.name, column.unit ? `(${column.unit})` : ""));
  return { height: box.bottom + 36, shapes: [axis, rows] };
}

function pointInWords(point, columns) {
  const numbers = columns.map((column, place) => `${column.name} ${point.values[place] === null ? "out of memory" : amount(column, point.values[place])}`);
  return [axesOf(point), ...numbers, point.best ? "best" : point.frontier ? "on the frontier" : "", point.note];
}

function sweepListing(sweep) {
  const axes = [...new Set(sweep.points.flatMap((point) => point.axes.map(([name]) => name)))];
  return listing([
    ...axes.map((axis) => [axis, (point) => point.axes.find(([name]) => name === axis)?.[1] ?? ""]),
    ...sweep.metrics.map((column, place) => [column.name, (point) => (point.values[place] === null ? "out of memory" : amount(column, point.values[place])), "number"]),
    ["", (point) => [point.best ? "best" : point.frontier ? "on the frontier" : "", point.note].filter(Boolean).join("; ")],
    ["Test", (point) => (byName.has(point.test) ? make("a", { href: addressOf({ test: point.test }) }, "open") : "")],
  ], sweep.points);
}
