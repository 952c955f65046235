// The samples of this run and of its confirmations, each a dot, against baseline and limit.

const DOT = 3;

function samplesChart(metric) {
  const strips = [["this run", metric.samples], ...metric.confirmations.map((samples, place) => [`confirmation ${place + 1}`, samples])]
    .map(([name, samples]) => ({ name, samples: samples.filter((sample) => sample !== null) }))
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
    const dots = stacked(samples.map((sample) => x(sample * metric.scale)), 26).map(([at, up], place) => {
      points.push({ x: at, y: floor - 6 - up, lines: [`${name}: ${amount(metric, samples[place])}`] });
      return dot(at, floor - 6 - up, "none", DOT);
    });
    return [
      draw("line", { class: "grid", x1: box.left, x2: box.right, y1: floor, y2: floor }),
      draw("text", { class: "strong", x: box.left, y: floor - 38 }, `${name} (${samples.length})`),
      dots,
      draw("line", { class: "median", x1: middle, x2: middle, y1: floor - 14, y2: floor + 2 }),
    ];
  });
  const lines = levels.map(({ kind, value }) => draw("line", { class: kind, x1: x(value * metric.scale), x2: x(value * metric.scale), y1: box.top, y2: box.bottom }));
  const ticks = roundNumbers(low, high, Math.max(2, width / 90));
  return { height: box.bottom + 36, shapes: [axisBottom(box, x, ticks, withUnit(metric.name, metric.unit ? `(${metric.unit})` : "")), lines, rows], points };
}

// Dots that would hide one another stand on one another; when the room is full, closer together.
function stacked(places, room) {
  const columns = new Map();
  const found = places.map((place) => {
    const column = Math.round(place / (DOT * 2));
    const under = columns.get(column) ?? 0;
    columns.set(column, under + 1);
    return [place, under];
  });
  const step = Math.min(DOT * 2, room / Math.max(1, ...columns.values()));
  return found.map(([place, under]) => [place, under * step]);
}
