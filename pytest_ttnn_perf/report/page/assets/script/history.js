// A metric, run after run: where it was against today's baseline and limit, and when it changed.

const HOSTS_TOLD = 5;
const MARKS = { accepted: "baseline accepted", stored: "baseline stored" };

function historyChart(metric) {
  const points = pointsOf(metric.history).filter((point) => point.value !== null);
  if (points.length < 2) return null;
  const hosts = [...new Set(points.map((point) => point.run.host))];
  const last = points.at(-1);
  const { figure } = chart({
    kind: "history",
    title: `History of ${metric.name}`,
    label: `${counted(points.length, "run")}, from ${amount(metric, points[0].value)} to ${amount(metric, last.value)}` +
      `${metric.limit === null ? "" : `, limit ${amount(metric, metric.limit)}`}; ${counted(metric.history.changes.length, "change")}`,
    legend: historyLegend(metric, points),
    paint: (width) => paintHistory(metric, points, hosts, width),
    after: [historyChanges(metric, points), opened("Numbers", () => historyNumbers(metric, points))],
  });
  return figure;
}

function historyLegend(metric, points) {
  const words = [...new Set(points.map((point) => point.outcome).filter(Boolean))];
  const tones = [...new Set(words.map(toneOf))];
  return [
    ...tones.map((tone) => [words.filter((word) => toneOf(word) === tone).join(", "), dot(8, 5, tone)]),
    ...(points.some((point) => point.mark) ? [["baseline accepted or stored", acceptMark(8, 9)]] : []),
    ...(metric.history.changes.length ? [["change", stroke("change")]] : []),
    ...(metric.baseline !== null && metric.limit !== null ? [["allowed, baseline to limit", swatch("band")]] : []),
  ];
}

const acceptMark = (x, y) => draw("path", { class: "mark-accept", d: `M${x} ${y}l-4 -7h8z` });

function paintHistory(metric, points, hosts, width) {
  const strip = hosts.length > 1 ? 16 : 0;
  const levels = levelsOf(metric);
  const right = Math.max(12, ...levels.map((level) => textWidth(level.text) + 10));
  const [low, high] = around([...points.map((point) => point.value), ...levels.map((level) => level.value)].map((value) => value * metric.scale));
  const ticks = roundNumbers(low, high, 5);
  const left = Math.max(...tickLabels(ticks).map((label) => textWidth(label))) + 12;
  const height = 210 + strip;
  const box = { left, right: width - right, top: 34, bottom: height - 36 - strip, width };
  const y = linear([low, high], [box.bottom, box.top]);
  const x = linear([0, points.length - 1], [box.left + 8, box.right - 8]);
  const at = (value) => y(value * metric.scale);
  const line = points.map((point, place) => `${x(place)},${at(point.value)}`).join(" ");
  const labels = points.map((point) => shortCommit(point.run.commit) || moment(point.run.started_at).slice(0, 10));
  const axis = axisBottom({ ...box, bottom: box.bottom + strip }, x, [...points.keys()], "run, by commit", labels, false);
  return {
    height,
    shapes: [
      axisLeft(box, y, ticks, metric.unit || metric.name),
      axis,
      allowedBand(metric, box, at),
      levelLines(levels, box, at),
      points.map((point, place) => (point.mark ? acceptLine(point, x(place), box) : null)),
      changeLines(metric, points, x, box),
      draw("polyline", { class: "line", points: line }),
      points.map((point, place) => dot(x(place), at(point.value), toneOf(point.outcome), points.length > 80 ? 2.5 : 3.5)),
      strip ? hostStrip(points, hosts, x, box) : null,
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
  const labels = spread(levels.map((level) => ({ ...level, y: at(level.value) })), 12, box.top, box.bottom);
  return labels.map(({ kind, value, text, y }) => [
    draw("line", { class: kind, x1: box.left, x2: box.right, y1: at(value), y2: at(value) }),
    draw("text", { x: box.right + 5, y: y + 3.5 }, text),
  ]);
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

// A line between the two runs of a change; its size above, where it touches no other.
function changeLines(metric, points, x, box) {
  let end = 90;  // the unit stands before it
  return metric.history.changes.map((change) => {
    const [from, to] = placesOf(change, points);
    const at = x((from + to) / 2);
    const text = signedPercent(change.change);
    const half = textWidth(text) / 2;
    const line = draw("line", { class: "change", x1: at, x2: at, y1: box.top - 8, y2: box.bottom });
    if (at - half < end || at + half > box.width) return line;
    end = at + half + 6;
    return [line, draw("text", { class: change.worse ? "bad" : "better", x: at, y: box.top - 12, "text-anchor": "middle" }, text)];
  });
}

// Where a change is among the points that are drawn.
function placesOf(change, points) {
  const after = points.findIndex((point) => point.place >= change.after);
  const to = after < 0 ? points.length - 1 : after;
  return [Math.max(0, to - 1), to];
}

// A letter for each of the first hosts.
function hostLetter(hosts, host) {
  const place = hosts.indexOf(host);
  return place < HOSTS_TOLD ? String.fromCharCode(65 + place) : "·";
}

function hostStrip(points, hosts, x, box) {
  const half = (x(1) - x(0)) / 2;
  const same = [];
  points.forEach((point, place) => {
    if (place && points[place - 1].run.host === point.run.host) same.at(-1).to = place;
    else same.push({ host: point.run.host, from: place, to: place });
  });
  return same.map(({ host, from, to }) => {
    const [start, end] = [Math.max(box.left, x(from) - half), Math.min(box.right, x(to) + half)];
    const wide = end - start > 10;
    return draw("g", null,
      draw("rect", { class: hosts.indexOf(host) % 2 ? "host" : "neither", "fill-opacity": 0.35, x: start + 0.5, width: Math.max(0.5, end - start - 1), y: box.bottom + 3, height: 12 }),
      wide ? draw("text", { class: "strong", x: (start + end) / 2, y: box.bottom + 12.5, "text-anchor": "middle" }, hostLetter(hosts, host)) : null,
      draw("title", null, host));
  });
}

function pointLines(metric, points, place) {
  const point = points[place];
  const change = metric.history.changes.find((one) => placesOf(one, points)[1] === place);
  return [
    [amount(metric, point.value), point.outcome].filter(Boolean).join("  "),
    ...runLines(point.run),
    MARKS[point.mark] ?? point.mark,
    change ? `${signedPercent(change.change)} since the run before: ${change.cause}` : "",
  ];
}

// The same in words: which runs a change is between, its cause, what finds the commit.
function historyChanges(metric, points) {
  const hosts = [...new Set(points.map((point) => point.run.host))];
  const named = hosts.slice(0, HOSTS_TOLD).map((host) => `${hostLetter(hosts, host)} ${host}`).join(", ");
  const more = hosts.length > HOSTS_TOLD ? `, and ${hosts.length - HOSTS_TOLD} more (·)` : "";
  const key = hosts.length > 1 ? make("p", { class: "hint" }, `Hosts: ${named}${more}`) : null;
  const told = metric.history.changes.map((change) => {
    const [from, to] = placesOf(change, points);
    return make("li", null,
      make("b", { class: change.worse ? "bad" : "better" }, signedPercent(change.change)),
      ` between ${shortCommit(points[from].run.commit)} and ${shortCommit(points[to].run.commit)}: ${change.cause}`,
      change.command ? command(change.command) : null);
  });
  return [key, told.length ? make("ul", { class: "changes" }, told) : null];
}

function historyNumbers(metric, points) {
  return listing([
    ["Run", ({ run }) => run.label || run.id],
    ["Commit", ({ run }) => shortCommit(run.commit)],
    ["Host", ({ run }) => run.host],
    ["Started", ({ run }) => moment(run.started_at)],
    [metric.name, ({ value }) => amount(metric, value), "number"],
    ["Outcome", ({ outcome, mark }) => [outcome, MARKS[mark] ?? mark].filter(Boolean).join(", ")],
  ], [...points].reverse());
}

// The small one in a row of the table: the line, the limit, and the last point in its colour.
function sparkline(metric, tone) {
  const values = metric.history.values.filter((value) => value !== null);
  if (values.length < 2) return null;
  const bounds = [...values, ...(metric.limit === null ? [] : [metric.limit])];
  const x = linear([0, values.length - 1], [2, 116]);
  const y = linear([Math.min(...bounds), Math.max(...bounds)], [18, 2]);
  const limit = metric.limit === null ? null : draw("line", { x1: 0, x2: 120, y1: y(metric.limit), y2: y(metric.limit) });
  return draw("svg", { class: `spark ${tone}`, viewBox: "0 0 120 20", role: "img", "aria-label": `${counted(values.length, "run")}, last ${amount(metric, values.at(-1))}` },
    limit, draw("polyline", { points: values.map((value, place) => `${x(place).toFixed(1)},${y(value).toFixed(1)}`).join(" ") }),
    draw("circle", { cx: x(values.length - 1), cy: y(values.at(-1)), r: 2.5 }));
}
