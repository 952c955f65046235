// How a number became another: what was before, each part of the change, what is now.

const PARTS_TOLD = 14;

function waterfallChart(waterfall) {
  const parts = shownParts(waterfall);
  const change = waterfall.after_us - waterfall.before_us;
  const { figure } = chart({
    kind: "waterfall",
    title: `What changed ${waterfall.metric}${waterfall.region ? ` in ${waterfall.region}` : ""}`,
    label: `From ${microseconds(waterfall.before_us)} to ${microseconds(waterfall.after_us)}: ${parts.map((part) => `${part.name} ${signedMicroseconds(part.change_us)}`).join(", ")}`,
    legend: [["slower", swatch("fill bad")], ["faster", swatch("fill better")], ["whole", swatch("fill whole")]],
    paint: (width) => paintWaterfall(waterfall, parts, width),
    after: [make("p", { class: "hint" }, `${signedMicroseconds(change)} in all; the parts add up to it.`),
      opened("Numbers", () => listing([
        ["Part", (part) => part.name],
        ["Change", (part) => signedMicroseconds(part.change_us), "number"],
        ["Cause", (part) => part.cause],
      ], parts))],
  });
  return figure;
}

// The largest parts; the others together. What no part accounts for is one, so that all add up.
function shownParts(waterfall) {
  const sum = waterfall.parts.reduce((total, part) => total + part.change_us, 0);
  const rest = waterfall.after_us - waterfall.before_us - sum;
  const bySize = [...waterfall.parts].sort((one, other) => Math.abs(other.change_us) - Math.abs(one.change_us));
  const told = bySize.length > PARTS_TOLD ? bySize.slice(0, PARTS_TOLD - 1) : bySize;
  const others = bySize.slice(told.length);
  if (others.length) told.push({ name: `${others.length} smaller parts`, change_us: others.reduce((total, part) => total + part.change_us, 0), cause: "" });
  if (Math.abs(rest) >= 0.05) told.push({ name: "not explained", change_us: rest, cause: "" });
  return told;
}

function paintWaterfall(waterfall, parts, width) {
  const steps = [];
  let level = waterfall.before_us;
  for (const part of parts) {
    const kind = part.change_us > 0 ? "bad" : "better";
    steps.push({ ...part, from: level, to: level + part.change_us, text: signedMicroseconds(part.change_us), kind });
    level += part.change_us;
  }
  const [low, high] = startOf([waterfall.before_us, waterfall.after_us, ...steps.map((step) => step.to)]);
  const end = (name, value) => ({ name, from: low, to: value, text: microseconds(value), kind: "whole", cause: "" });
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
