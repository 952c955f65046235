// Where the time of a region goes: an area per op, the longest first.

const BOUNDS = { dram: "DRAM-bound", compute: "compute-bound", "": "neither, or not known" };
const boundKind = (op) => op.bound || "neither";

function boundLegend(ops) {
  return Object.entries(BOUNDS)
    .filter(([bound]) => ops.some((op) => op.bound === bound))
    .map(([bound, name]) => [name, swatch(bound || "neither")]);
}

function treemapChart(region) {
  const ops = region.ops.filter((op) => op.time_us > 0);
  if (!ops.length) return null;
  const { figure } = chart({
    kind: "treemap",
    title: `Time by op in ${region.name || "the test"}`,
    label: ops.slice(0, 5).map((op) => `${op.name} ${percent(op.share)}`).join(", "),
    legend: boundLegend(ops),
    paint: (width) => paintTreemap(ops, width),
    after: opened(`All ${counted(ops.length, "op")}`, () => opListing(region.ops)),
  });
  return figure;
}

function paintTreemap(ops, width) {
  const height = width < 480 ? 240 : 280;
  const tiles = squarified(ops.map((op) => op.time_us), width, height);
  return {
    height,
    shapes: tiles.map((tile, place) => treemapTile(tile, ops[place])),
    points: tiles.map((tile, place) => ({ x: tile.x + tile.width / 2, y: tile.y + tile.height / 2, lines: opLines(ops[place]) })),
  };
}

function treemapTile({ x, y, width, height }, op) {
  const room = width - 12;
  // Of names, a part tells something; of numbers, it would tell something else.
  const numbers = [`${percent(op.share)}  ${microseconds(op.time_us)}`, percent(op.share), ""].find((text) => textWidth(text) <= room);
  const lines = [fitted(op.name, room), numbers, fitted(op.shape, room)].slice(0, room < 24 ? 0 : Math.floor((height - 6) / 14));
  return draw("g", null,
    draw("rect", { class: `tile ${boundKind(op)}`, x, y, width, height }),
    lines.map((line, place) => (line ? draw("text", { class: "on", x: x + 6, y: y + 15 + place * 14 }, line) : null)));
}

// Rectangles of these sizes that fill a rectangle, as close to squares as they can be
// (Bruls, Huizing and van Wijk: Squarified Treemaps).
function squarified(sizes, width, height) {
  const unit = (width * height) / sizes.reduce((sum, size) => sum + size, 0);
  const areas = sizes.map((size) => size * unit);
  const free = { x: 0, y: 0, width, height };
  const tiles = [];
  let first = 0;
  while (first < areas.length) {
    const side = Math.min(free.width, free.height);
    let last = first + 1;
    while (last < areas.length && flattest(areas.slice(first, last + 1), side) <= flattest(areas.slice(first, last), side)) last += 1;
    tiles.push(...filledRow(areas.slice(first, last), free));
    first = last;
  }
  return tiles;
}

// How far from a square the worst tile of a row would be.
function flattest(areas, side) {
  const sum = areas.reduce((total, area) => total + area, 0);
  return Math.max((side ** 2 * Math.max(...areas)) / sum ** 2, sum ** 2 / (side ** 2 * Math.min(...areas)));
}

function filledRow(areas, free) {
  const sum = areas.reduce((total, area) => total + area, 0);
  const upright = free.width >= free.height;
  const thick = sum / (upright ? free.height : free.width);
  let along = upright ? free.y : free.x;
  const tiles = areas.map((area) => {
    const long = area / thick;
    const tile = upright ? { x: free.x, y: along, width: thick, height: long } : { x: along, y: free.y, width: long, height: thick };
    along += long;
    return tile;
  });
  if (upright) Object.assign(free, { x: free.x + thick, width: free.width - thick });
  else Object.assign(free, { y: free.y + thick, height: free.height - thick });
  return tiles;
}

function opLines(op) {
  return [
    op.name,
    op.shape,
    `${microseconds(op.time_us)}, ${percent(op.share)}, ${digits(op.calls)} calls`,
    op.ideal_us === null ? "" : `at best ${microseconds(op.ideal_us)} (${BOUNDS[op.bound] ?? op.bound})`,
    op.tflops === null ? "" : `${digits(op.tflops)} TFLOP/s${op.intensity === null ? "" : ` at ${digits(op.intensity)} FLOP per byte`}`,
    op.note,
  ];
}

function opListing(ops) {
  return listing([
    ["Op", (op) => make("span", { class: "id" }, op.name)],
    ["Shape", (op) => op.shape],
    ["Calls", (op) => String(Number(op.calls.toFixed(2))), "number"],
    ["Time", (op) => microseconds(op.time_us), "number"],
    ["Share", (op) => percent(op.share), "number"],
    ["At best", (op) => (op.ideal_us === null ? "–" : microseconds(op.ideal_us)), "number"],
    ["Bound by", (op) => op.bound || "–"],
    ["Cores", (op) => (op.cores === null ? "–" : String(op.cores)), "number"],
    ["Note", (op) => op.note],
  ], ops);
}
