// From numbers to places, and the axes that say which.

const measuring = document.createElement("canvas").getContext("2d");

// How wide a text is in a chart.
function textWidth(text, size = 11) {
  measuring.font = `${size}px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif`;
  return measuring.measureText(text).width;
}

// As much of a text as fits; beginning and end tell more than the middle.
function fitted(text, width, size = 11) {
  if (textWidth(text, size) <= width) return text;
  for (let kept = Math.min(text.length - 1, Math.ceil(width / 4)); kept > 2; kept -= 1) {
    const end = Math.floor(kept / 3);
    const cut = `${text.slice(0, kept - end)}…${text.slice(text.length - end)}`;
    if (textWidth(cut, size) <= width) return cut;
  }
  return "";
}

function linear([low, high], [from, to]) {
  const span = high - low || 1;
  const scale = (value) => from + ((value - low) / span) * (to - from);
  return scale;
}

function logarithmic([low, high], range) {
  const scale = linear([Math.log10(low), Math.log10(high)], range);
  return (value) => scale(Math.log10(value));
}

// Round numbers in a range, about so many.
function roundNumbers(low, high, count) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.ceil(low / step - 1e-9);
  const found = [];
  for (let at = first; at * step <= high + step * 1e-9; at += 1) found.push(Number((at * step).toPrecision(12)));
  return found;
}

// Powers of ten in a range; where that is less than three, two and five times them as well.
function powersOfTen(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) found.push(...[1, 2, 5].map((factor) => Number(`${factor}e${power}`)));
  const inside = found.filter((number) => number >= low && number <= high);
  const tens = inside.filter((number) => Number.isInteger(Number(Math.log10(number).toFixed(9))));
  return tens.length < 3 ? inside : tens;
}

// The range of numbers, with room about it.
function around(values, room = 0.08) {
  const known = values.filter((value) => Number.isFinite(value));
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const more = (high - low || Math.abs(high) || 1) * room;
  return [low - more, high + more];
}

// Labels of ticks have all the same number of digits after the point.
function tickLabels(ticks) {
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(ticks[0]) || 1;
  const places = Math.min(8, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  return ticks.map((tick) => (Math.abs(tick) >= 1e7 ? tick.toExponential(1) : tick.toFixed(places)));
}

// An axis on the left: lines across the plot, numbers beside them, the unit above.
function axisLeft(box, scale, ticks, title, labels = tickLabels(ticks)) {
  const lines = ticks.map((tick, place) => [
    draw("line", { class: "grid", x1: box.left, x2: box.right, y1: scale(tick), y2: scale(tick) }),
    draw("text", { x: box.left - 6, y: scale(tick) + 3.5, "text-anchor": "end" }, labels[place]),
  ]);
  return draw("g", { class: "axes" }, lines, draw("text", { x: 2, y: box.top - 8 }, title));
}

// An axis below; labels that would touch the one before are left out, the title is below them.
function axisBottom(box, scale, ticks, title, labels = tickLabels(ticks), lined = true) {
  let end = -Infinity;
  const marks = ticks.map((tick, place) => {
    const half = textWidth(labels[place]) / 2;
    const at = Math.min(Math.max(scale(tick), half + 1), box.width - half - 1);
    const line = draw("line", { class: "grid", x1: scale(tick), x2: scale(tick), y1: lined ? box.top : box.bottom, y2: box.bottom + 4 });
    if (at - half < end + 8) return lined ? line : null;
    end = at + half;
    return [line, draw("text", { x: at, y: box.bottom + 15, "text-anchor": "middle" }, labels[place])];
  });
  const base = draw("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom });
  const name = draw("text", { x: (box.left + box.right) / 2, y: box.bottom + 30, "text-anchor": "middle" }, title);
  return draw("g", { class: "axes" }, marks, base, name);
}

// Places for labels of a given height, as near to what they are of as they can be without touching.
function spread(labels, height, low, high) {
  const sorted = [...labels].sort((one, other) => one.y - other.y);
  let above = low - height;
  for (const label of sorted) above = label.y = Math.max(label.y, above + height);
  let below = high + height;
  for (const label of sorted.reverse()) below = label.y = Math.min(label.y, below - height);
  return labels;
}

// A label at the first of some spots where it is inside and touches nothing; `taken` are boxes, and
// gets that of the label. Nothing where there is no such spot.
function labelAt(text, spots, box, taken) {
  const width = textWidth(text);
  for (const [left, base] of spots) {
    const area = [left, base - 10, left + width, base + 3];
    const inside = area[0] > box.left && area[2] < box.right && area[1] > box.top && area[3] < box.bottom;
    if (!inside || taken.some((other) => touch(area, other))) continue;
    taken.push(area);
    return draw("text", { class: "strong", x: left, y: base }, text);
  }
  return null;
}

const touch = (one, other) => one[0] <= other[2] && other[0] <= one[2] && one[1] <= other[3] && other[1] <= one[3];

// What all charts have: a title, a legend, a text that says the same, and values under the pointer.

const tip = make("div", { id: "tip", role: "status", hidden: true });

function showTip(lines, x, y) {
  tip.textContent = lines.filter(Boolean).join("\n");
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(x + 12, innerWidth - width - 4))}px`;
  tip.style.top = `${y + height + 20 > innerHeight ? Math.max(4, y - height - 12) : y + 14}px`;
}

const hideTip = () => (tip.hidden = true);

// Charts are drawn when they have a width, and again when they get another.
const drawn = new Map();
const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    const width = Math.floor(contentRect.width);
    const last = drawn.get(target);
    if (!target.isConnected) {
      sizes.unobserve(target);
      drawn.delete(target);
      continue;
    }
    if (width < 40 || width === last.width) continue;
    last.width = width;
    last.paint(width);
  }
});

// A chart. `paint(width)` returns { height, shapes, points }; points are { x, y, lines } that a
// reader can go to. `label` says in words what the chart shows.
function chart({ title, label, legend = [], kind, paint, after = [] }) {
  const plot = draw("svg", { class: "plot", role: "img", "aria-label": `${title}. ${label}`, "data-chart": kind });
  const holder = make("div", { class: "holder" }, plot);
  const figure = make("figure", { class: "chart" }, make("figcaption", null, title),
    legend.length ? make("div", { class: "legend", "aria-hidden": "true" }, legend.map(legendEntry)) : null, holder, after);
  const explore = explorer(plot);
  const repaint = (width) => {
    const { height, shapes, points = [] } = paint(width);
    plot.setAttribute("viewBox", `0 0 ${width} ${height}`);
    plot.replaceChildren(...[shapes].flat(Infinity).filter(Boolean));
    explore(points);
  };
  drawn.set(holder, { width: 0, paint: repaint });
  sizes.observe(holder);
  return { figure, plot, repaint: () => repaint(drawn.get(holder).width) };
}

// An entry is [what it is called, shape of it in a box of 16 by 10].
function legendEntry([name, shape]) {
  return make("span", null, draw("svg", { viewBox: "0 0 16 10", class: "plot" }, shape), name);
}

// Shapes are told apart without their colours: bad is a square, better a triangle, unsure hollow.
function dot(x, y, tone, size = 3.5) {
  const kind = `dot ${tone}`;
  if (tone === "bad") return draw("rect", { class: kind, x: x - size, y: y - size, width: 2 * size, height: 2 * size });
  if (tone === "better") {
    const [wide, high] = [size * 1.2, size * 1.2];
    return draw("path", { class: kind, d: `M${x - wide} ${y + high}L${x + wide} ${y + high}L${x} ${y - high}Z` });
  }
  if (tone === "unsure") return draw("path", { class: kind, d: `M${x} ${y - size * 1.3}L${x + size * 1.3} ${y}L${x} ${y + size * 1.3}L${x - size * 1.3} ${y}Z` });
  return draw("circle", { class: kind, cx: x, cy: y, r: size });
}

const stroke = (kind) => draw("line", { class: kind, x1: 0, x2: 16, y1: 5, y2: 5 });
const swatch = (kind) => draw("rect", { class: kind, x: 2, y: 0, width: 12, height: 10 });

// Lets a reader go from point to point, by pointer or with the arrow keys.
function explorer(plot) {
  let points = [];
  let at = -1;
  let ring = null;
  const leave = () => {
    at = -1;
    ring?.remove();
    hideTip();
  };
  const show = (place, box = plot.getBoundingClientRect()) => {
    at = place;
    const { x, y, lines } = points[place];
    const scale = box.width / plot.viewBox.baseVal.width;
    ring?.remove();
    ring = draw("circle", { class: "ring", cx: x, cy: y, r: 6 });
    plot.append(ring);
    showTip(lines, box.left + x * scale, box.top + y * scale);
  };
  plot.addEventListener("pointermove", (event) => {
    if (!points.length) return;
    const box = plot.getBoundingClientRect();
    const scale = box.width / plot.viewBox.baseVal.width;
    const [x, y] = [(event.clientX - box.left) / scale, (event.clientY - box.top) / scale];
    const far = ({ x: px, y: py }) => (px - x) ** 2 + (py - y) ** 2;
    const nearest = points.reduce((best, point, place) => (far(point) < far(points[best]) ? place : best), 0);
    if (far(points[nearest]) < 40 ** 2) show(nearest, box);
    else leave();
  });
  plot.addEventListener("pointerleave", leave);
  plot.addEventListener("blur", leave);
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step || !points.length) return;
    event.preventDefault();
    show(at < 0 ? (step > 0 ? 0 : points.length - 1) : (at + step + points.length) % points.length);
  });
  return (found) => {
    points = found;
    leave();
    if (points.length) plot.setAttribute("tabindex", "0");
  };
}

// A metric, run after run: where it was against today's baseline and limit.

function historyChart(metric) {
  const { runs, values, outcomes, marks } = metric.history;
  const points = values.map((value, place) => ({ value, run: page.runs[runs[place]], outcome: outcomes[place], mark: marks[place] }));
  if (points.length < 2) return null;
  const last = points.at(-1);
  const { figure } = chart({
    kind: "history",
    title: `History of ${metric.name}`,
    label: `${counted(points.length, "run")}, from ${amount(metric, points[0].value)} to ${amount(metric, last.value)}` +
      `${metric.limit === null ? "" : `, limit ${amount(metric, metric.limit)}`}`,
    legend: historyLegend(metric, points),
    paint: (width) => paintHistory(metric, points, width),
    after: [opened("Table", () => historyNumbers(metric, points))],
  });
  return figure;
}

function historyLegend(metric, points) {
  const words = [...new Set(points.map((point) => point.outcome).filter(Boolean))];
  const tones = [...new Set(words.map(toneOf))];
  return [
    ...tones.map((tone) => [words.filter((word) => toneOf(word) === tone).join(", "), dot(8, 5, tone)]),
    ...(points.some((point) => point.mark) ? [["baseline accepted or stored", acceptMark(8, 9)]] : []),
    ...(metric.baseline !== null && metric.limit !== null ? [["within the limit", swatch("band")]] : []),
  ];
}

const acceptMark = (x, y) => draw("path", { class: "mark-accept", d: `M${x} ${y}l-4 -7h8z` });

function paintHistory(metric, points, width) {
  const levels = levelsOf(metric);
  const right = Math.max(12, ...levels.map((level) => textWidth(level.text) + 10));
  const [low, high] = around([...points.map((point) => point.value), ...levels.map((level) => level.value)].map((value) => value * metric.scale));
  const ticks = roundNumbers(low, high, 5);
  const left = Math.max(...tickLabels(ticks).map((label) => textWidth(label))) + 12;
  const height = 210;
  const box = { left, right: width - right, top: 34, bottom: height - 36, width };
  const y = linear([low, high], [box.bottom, box.top]);
  const x = linear([0, points.length - 1], [box.left + 8, box.right - 8]);
  const at = (value) => y(value * metric.scale);
  const line = points.map((point, place) => `${x(place)},${at(point.value)}`).join(" ");
  const labels = points.map((point) => shortCommit(point.run.commit) || moment(point.run.started_at).slice(0, 10));
  return {
    height,
    shapes: [
      axisLeft(box, y, ticks, metric.unit || metric.name),
      axisBottom(box, x, [...points.keys()], "run, by commit", labels, false),
      allowedBand(metric, box, at),
      levelLines(levels, box, at),
      points.map((point, place) => (point.mark ? acceptLine(point, x(place), box) : null)),
      draw("polyline", { class: "line", points: line }),
      points.map((point, place) => dot(x(place), at(point.value), toneOf(point.outcome), points.length > 80 ? 2.5 : 3.5)),
    ],
    points: points.map((point, place) => ({ x: x(place), y: at(point.value), lines: pointLines(metric, points, place) })),
  };
}

// What a value is held against. The unit stands at the axis.
function levelsOf(metric) {
  return ["baseline", "limit", "target"]
    .filter((kind) => metric[kind] !== null)
    .map((kind) => ({ kind, value: metric[kind], text: `${kind} ${metric.unit ? digits(metric[kind] * metric.scale) : amount(metric, metric[kind])}` }));
}

function levelLines(levels, box, at) {
  const lines = levels.map(({ kind, value }) => draw("line", { class: kind, x1: box.left, x2: box.right, y1: at(value), y2: at(value) }));
  return [lines, levelNames(levels, box, at)];
}

// Names of lines, on the right of the plot.
function levelNames(levels, box, at) {
  const labels = spread(levels.map(({ text, value }) => ({ text, y: at(value) })), 12, box.top, box.bottom);
  return labels.map(({ text, y }) => draw("text", { x: box.right + 5, y: y + 3.5 }, text));
}

function allowedBand(metric, box, at) {
  if (metric.baseline === null || metric.limit === null) return null;
  const [one, other] = [at(metric.baseline), at(metric.limit)];
  return draw("rect", { class: "band", x: box.left, width: box.right - box.left, y: Math.min(one, other), height: Math.abs(one - other) });
}

function acceptLine(point, x, box) {
  return draw("g", { class: "accepted" },
    draw("line", { class: "accept", x1: x, x2: x, y1: box.top, y2: box.bottom }), acceptMark(x, box.top));
}

function pointLines(metric, points, place) {
  const point = points[place];
  return [
    [amount(metric, point.value), point.outcome].filter(Boolean).join("  "),
    ...runLines(point.run),
    point.mark ? `baseline ${point.mark}` : "",
  ];
}

function historyNumbers(metric, points) {
  return listing([
    ["Run", ({ run }) => run.label || run.id],
    ["Commit", ({ run }) => shortCommit(run.commit)],
    ["Host", ({ run }) => run.host],
    ["Started", ({ run }) => moment(run.started_at)],
    [metric.name, ({ value }) => amount(metric, value), "number"],
    ["Verdict", ({ outcome, mark }) => [outcome, mark ? `baseline ${mark}` : ""].filter(Boolean).join(", ")],
  ], [...points].reverse());
}

// The small one in a row of the table: the line, the limit, and the last point in its colour.
function sparkline(metric, tone) {
  const { values } = metric.history;
  if (values.length < 2) return null;
  const bounds = [...values, ...(metric.limit === null ? [] : [metric.limit])];
  const x = linear([0, values.length - 1], [2, 116]);
  const y = linear([Math.min(...bounds), Math.max(...bounds)], [18, 2]);
  const limit = metric.limit === null ? null : draw("line", { x1: 0, x2: 120, y1: y(metric.limit), y2: y(metric.limit) });
  return draw("svg", { class: `spark ${tone}`, viewBox: "0 0 120 20", role: "img", "aria-label": `${counted(values.length, "run")}, last ${amount(metric, values.at(-1))}` },
    limit, draw("polyline", { points: values.map((value, place) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }),
    draw("circle", { cx: x(values.length - 1), cy: y(values.at(-1)), r: 2.5 }));
}

// The samples of each process, each a dot, the first on top, against baseline and limit.

const DOT = 3;

function samplesChart(metric) {
  const strips = [metric.samples, ...metric.confirmations]
    .map((samples, place) => ({ name: place ? `repeat ${place}` : "first process", samples }))
    .filter(({ samples }) => samples.length);
  if (strips.every(({ samples }) => samples.length < 2)) return null;
  const { figure } = chart({
    kind: "samples",
    title: `Samples of ${metric.name}`,
    label: strips.map(({ name, samples }) => `${name}: ${counted(samples.length, "sample")}, median ${amount(metric, median(samples))}`).join("; "),
    legend: [["sample", dot(8, 5, "none", DOT)], ["median", stroke("median")],
      ...levelsOf(metric).map(({ kind, value }) => [`${kind} ${amount(metric, value)}`, stroke(kind)])],
    paint: (width) => paintSamples(metric, strips, width),
  });
  return figure;
}

function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function paintSamples(metric, strips, width) {
  const levels = levelsOf(metric).filter(({ kind }) => kind !== "target");
  const every = [...strips.flatMap(({ samples }) => samples), ...levels.map(({ value }) => value)].map((value) => value * metric.scale);
  const [low, high] = around(every);
  const box = { left: 8, right: width - 8, top: 6, bottom: 6 + strips.length * 52, width };
  const x = linear([low, high], [box.left, box.right]);
  const points = [];
  const rows = strips.map(({ name, samples }, row) => {
    const floor = box.top + row * 52 + 48;
    const middle = x(median(samples) * metric.scale);
    const dots = samples.map((sample, place) => {
      const [at, y] = [x(sample * metric.scale), floor - 30 + (26 * place) / samples.length];
      points.push({ x: at, y, lines: [`${name}: ${amount(metric, sample)}`] });
      return dot(at, y, "none", DOT);
    });
    return [
      draw("line", { class: "grid", x1: box.left, x2: box.right, y1: floor, y2: floor }),
      draw("text", { class: "strong", x: box.left, y: floor - 38 }, `${name} (${samples.length})`),
      levels.map(({ kind, value }) => draw("line", { class: kind, x1: x(value * metric.scale), x2: x(value * metric.scale), y1: floor - 34, y2: floor })),
      dots,
      draw("line", { class: "median", x1: middle, x2: middle, y1: floor - 14, y2: floor + 2 }),
    ];
  });
  const ticks = roundNumbers(low, high, Math.max(2, width / 90));
  return { height: box.bottom + 36, shapes: [axisBottom(box, x, ticks, withUnit(metric.name, metric.unit ? `(${metric.unit})` : ""), tickLabels(ticks), false), rows], points };
}

// How a number became another: what was before, each part of the change, what is now.

function waterfallChart(waterfall) {
  const { parts } = waterfall;
  const change = waterfall.after_us - waterfall.before_us;
  const { figure } = chart({
    kind: "waterfall",
    title: `Change of ${waterfall.metric}`,
    label: `From ${duration(waterfall.before_us)} to ${duration(waterfall.after_us)}: ${parts.map((part) => `${part.name} ${signedDuration(part.change_us)}`).join(", ")}`,
    legend: [["slower", swatch("fill bad")], ["faster", swatch("fill better")], ["whole", swatch("fill whole")]],
    paint: (width) => paintWaterfall(waterfall, parts, width),
    after: [make("p", { class: "hint" }, `${signedDuration(change)} in all; the parts add up to it.`),
      opened("Table", () => listing([
        ["Part", (part) => part.name],
        ["Change", (part) => signedDuration(part.change_us), "number"],
        ["Cause", (part) => part.cause],
      ], parts))],
  });
  return figure;
}

function paintWaterfall(waterfall, parts, width) {
  const steps = [];
  let level = waterfall.before_us;
  for (const part of parts) {
    const kind = part.change_us > 0 ? "bad" : "better";
    steps.push({ ...part, from: level, to: level + part.change_us, text: signedDuration(part.change_us), kind });
    level += part.change_us;
  }
  const [low, high] = startOf([waterfall.before_us, waterfall.after_us, ...steps.map((step) => step.to)]);
  const end = (name, value) => ({ name, from: low, to: value, text: duration(value), kind: "whole", cause: "" });
  const rows = [end("before", waterfall.before_us), ...steps, end("after", waterfall.after_us)];
  const names = Math.min(width * 0.34, Math.max(...rows.map((row) => textWidth(row.name))) + 8);
  const numbers = Math.max(...rows.map((row) => textWidth(row.text))) + 10;
  const box = { left: names + 4, right: width - numbers, top: 4, bottom: 4 + rows.length * 22, width };
  const x = linear([low, high], [box.left, box.right]);
  const ticks = roundNumbers(low, high, Math.max(2, (box.right - box.left) / 80));
  const axis = `µs per call of the region${low > 0 ? "; does not begin at 0" : ""}`;
  return {
    height: box.bottom + 36,
    shapes: [axisBottom(box, x, ticks, axis), rows.map((row, place) => waterfallRow(row, rows[place + 1], place, box, x))],
    points: rows.map((row, place) => ({ x: (x(row.from) + x(row.to)) / 2, y: box.top + place * 22 + 11, lines: [row.name, row.text, row.cause] })),
  };
}

// Where the axis begins: at 0 if the change can be seen then.
function startOf(levels) {
  const [low, high] = [Math.min(...levels), Math.max(...levels)];
  if (high - low > high * 0.3) return [0, high];
  return [Math.max(0, low - (high - low || high * 0.1) * 0.5), high];
}

function waterfallRow(row, next, place, box, x) {
  const top = box.top + place * 22;
  const [start, end] = [Math.min(x(row.from), x(row.to)), Math.max(x(row.from), x(row.to))];
  return draw("g", null,
    draw("text", { class: "strong", x: box.left - 6, y: top + 14.5, "text-anchor": "end" }, fitted(row.name, box.left - 8)),
    draw("rect", { class: `fill ${row.kind}`, x: start, width: Math.max(1.5, end - start), y: top + 4, height: 14, rx: 2 }),
    next ? draw("line", { class: "grid", x1: x(row.to), x2: x(row.to), y1: top + 18, y2: top + 26 }) : null,
    draw("text", { class: row.kind === "whole" ? "strong" : row.kind, x: box.width - 2, y: top + 14.5, "text-anchor": "end" }, row.text));
}

// Where the time of a region goes: an area per op, the longest first.

const BOUNDS = { dram: "DRAM-bound", compute: "compute-bound", "": "neither, or not known" };
const boundKind = (op) => op.bound || "neither";

function boundLegend(ops) {
  return Object.entries(BOUNDS)
    .filter(([bound]) => ops.some((op) => op.bound === bound))
    .map(([bound, name]) => [name, swatch(bound || "neither")]);
}

function treemapChart(region) {
  const { ops } = region;
  const { figure } = chart({
    kind: "treemap",
    title: "Share of each op",
    label: ops.slice(0, 5).map((op) => `${op.name} ${percent(op.share)}`).join(", "),
    legend: boundLegend(ops),
    paint: (width) => paintTreemap(ops, width),
    after: opened(`All ${counted(ops.length, "op")}`, () => opListing(region.ops)),
  });
  return figure;
}

function paintTreemap(ops, width) {
  const height = width < 480 ? 240 : 280;
  const tiles = divided(ops.map((op) => op.time_us), 0, 0, width, height);
  return {
    height,
    shapes: tiles.map((tile, place) => treemapTile(tile, ops[place])),
    points: tiles.map((tile, place) => ({ x: tile.x + tile.width / 2, y: tile.y + tile.height / 2, lines: opLines(ops[place]) })),
  };
}

function treemapTile({ x, y, width, height }, op) {
  const room = width - 12;
  // Of names, a part tells something; of numbers, it would tell something else.
  const numbers = [`${percent(op.share)}  ${duration(op.time_us)}`, percent(op.share), ""].find((text) => textWidth(text) <= room);
  const lines = [fitted(op.name, room), numbers, fitted(op.shape, room)].slice(0, room < 24 ? 0 : Math.floor((height - 6) / 14));
  return draw("g", null,
    draw("rect", { class: `tile ${boundKind(op)}`, x, y, width, height }),
    lines.map((line, place) => (line ? draw("text", { class: "on", x: x + 6, y: y + 15 + place * 14 }, line) : null)));
}

// Rectangles of these sizes that fill a rectangle: halves of the sum, cut across its longer side.
function divided(sizes, x, y, width, height) {
  if (sizes.length < 2) return [{ x, y, width, height }];
  const sum = sizes.reduce((total, size) => total + size, 0);
  let [count, first] = [1, sizes[0]];
  while (count < sizes.length - 1 && first + sizes[count] / 2 < sum / 2) first += sizes[count++];
  const [part, [some, others]] = [first / sum, [sizes.slice(0, count), sizes.slice(count)]];
  return width >= height
    ? [...divided(some, x, y, width * part, height), ...divided(others, x + width * part, y, width * (1 - part), height)]
    : [...divided(some, x, y, width, height * part), ...divided(others, x, y + height * part, width, height * (1 - part))];
}

function opLines(op) {
  return [
    op.name,
    op.shape,
    `${duration(op.time_us)}, ${percent(op.share)}, ${digits(op.calls)} calls`,
    op.ideal_us === null ? "" : `roofline ${duration(op.ideal_us)} (${BOUNDS[op.bound] ?? op.bound})`,
    op.tflops === null ? "" : `${digits(op.tflops)} TFLOP/s${op.intensity === null ? "" : ` at ${digits(op.intensity)} FLOP per byte`}`,
    op.note,
  ];
}

function opListing(ops) {
  return listing([
    ["Op", (op) => make("span", { class: "id" }, op.name)],
    ["Shape", (op) => op.shape],
    ["Calls", (op) => String(Number(op.calls.toFixed(2))), "number"],
    ["Time", (op) => duration(op.time_us), "number"],
    ["Share", (op) => percent(op.share), "number"],
    ["Roofline", (op) => (op.ideal_us === null ? "" : duration(op.ideal_us)), "number"],
    ["Bound by", (op) => (op.bound ? BOUNDS[op.bound] : "")],
    ["Cores", (op) => (op.cores === null ? "" : String(op.cores)), "number"],
    ["Note", (op) => op.note],
  ], ops);
}

// What ops reach against what the hardware could do, by how much they compute per byte of DRAM.

const NAMED_OPS = 6;

function rooflineChart(region) {
  const { roof } = region;
  const ops = region.ops.filter((op) => op.intensity > 0 && op.tflops > 0);
  if (!roof || !roof.peaks_tflops.length || !ops.length) return null;
  const known = ops.reduce((sum, op) => sum + op.share, 0);
  const { figure } = chart({
    kind: "roofline",
    title: "Roofline",
    label: `DRAM ${digits(roof.dram_gb_s)} GB/s; ` + roof.peaks_tflops.map(([name, peak]) => `${name} ${digits(peak)} TFLOP/s`).join(", ") +
      `; ${counted(ops.length, "op")} with ${percent(known)} of the time`,
    legend: [...boundLegend(ops), [`DRAM ${digits(roof.dram_gb_s)} GB/s, peaks of the chip`, stroke("roof")], ["area: time", draw("circle", { class: "ghost", cx: 8, cy: 5, r: 4.5 })]],
    paint: (width) => paintRoofline(roof, ops, width),
    after: make("p", { class: "hint" },
      `Ops with ${percent(known)} of the time: those with FLOPs and DRAM traffic. ` +
      "Colour: what limits the op. Lines: peak of the whole chip."),
  });
  return figure;
}

function paintRoofline(roof, ops, width) {
  const peaks = roof.peaks_tflops.map(([, peak]) => peak);
  const ridge = (Math.max(...peaks) / roof.dram_gb_s) * 1000;
  const xs = [...ops.map((op) => op.intensity), ridge];
  const ys = [...ops.map((op) => op.tflops), ...peaks];
  const xRange = [Math.min(...xs) / 2, Math.max(...xs) * 4];
  const yRange = [Math.min(...ys) / 2, Math.max(...ys) * 2];
  const height = 280;
  const names = roof.peaks_tflops.map(([name, peak]) => ({ value: peak, text: `${name} ${digits(peak)}` }));
  const box = { left: 48, right: width - 10 - Math.max(...names.map(({ text }) => textWidth(text))), top: 22, bottom: height - 36, width };
  const x = logarithmic(xRange, [box.left, box.right]);
  const y = logarithmic(yRange, [box.bottom, box.top]);
  const longest = Math.max(...ops.map((op) => op.time_us));
  const circles = ops.map((op) => ({ op, x: x(op.intensity), y: y(op.tflops), r: 3 + 13 * Math.sqrt(op.time_us / longest) }));
  const ten = (range) => powersOfTen(...range);
  const plain = (ticks) => ticks.map((tick) => (tick < 1e-3 || tick >= 1e6 ? tick.toExponential(0) : String(tick)));
  const within = (place, low, high) => Math.min(Math.max(place, low), high);
  for (const circle of circles) {
    circle.x = within(circle.x, box.left + circle.r, box.right - circle.r);
    circle.y = within(circle.y, box.top + circle.r, box.bottom - circle.r);
  }
  const roofs = roofLines(roof, xRange, yRange, x, y, box);
  return {
    height,
    shapes: [
      axisLeft(box, y, ten(yRange), "TFLOP/s", plain(ten(yRange))),
      axisBottom(box, x, ten(xRange), "FLOP per byte of DRAM", plain(ten(xRange))),
      roofs.map(([x1, y1, x2, y2]) => draw("line", { class: "roof", x1, y1, x2, y2 })),
      circles.map((circle) => draw("circle", { class: `bubble ${boundKind(circle.op)}`, cx: circle.x, cy: circle.y, r: circle.r })),
      levelNames(names, box, y),
      opNames(circles, box, roofs),
    ],
    points: circles.map((circle) => ({ x: circle.x, y: circle.y, lines: opLines(circle.op) })),
  };
}

// Ends of the lines of DRAM and of each peak.
function roofLines(roof, xRange, yRange, x, y, box) {
  const slope = roof.dram_gb_s / 1000;  // TFLOP/s at one FLOP per byte
  const top = Math.max(...roof.peaks_tflops.map(([, peak]) => peak));
  const start = Math.max(xRange[0], yRange[0] / slope);
  return [
    [x(start), y(start * slope), x(top / slope), y(top)],
    ...roof.peaks_tflops.map(([, peak]) => [x(Math.max(xRange[0], peak / slope)), y(peak), box.right, y(peak)]),
  ];
}

// Names of the longest ops, beside their circles, where they hide nothing.
function opNames(circles, box, roofs) {
  const taken = circles.map(({ x, y, r }) => [x - r, y - r, x + r, y + r]);
  for (const [x1, y1, x2, y2] of roofs) {
    for (let part = 0; part <= 1; part += 0.02) {
      const [x, y] = [x1 + (x2 - x1) * part, y1 + (y2 - y1) * part];
      taken.push([x, y, x, y]);
    }
  }
  const longest = [...circles].sort((one, other) => other.op.time_us - one.op.time_us).slice(0, NAMED_OPS);
  return longest.map(({ op, x, y, r }) => {
    const name = fitted(`${op.name} ${op.shape}`, 150);
    const half = textWidth(name) / 2;
    const spots = [[x + r + 3, y + 4], [x - r - 3 - 2 * half, y + 4], [x - half, y - r - 4], [x - half, y + r + 12]];
    return labelAt(name, spots, box, taken);
  });
}
