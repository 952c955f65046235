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
  scale.back = (place) => low + ((place - from) / (to - from)) * span;
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
  return ticks.map((tick) => (Math.abs(tick) >= 1e7 ? tick.toExponential(1) : grouped(tick.toFixed(places))));
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
