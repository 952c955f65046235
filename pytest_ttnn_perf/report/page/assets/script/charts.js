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


// Paper is narrower than most screens: charts are drawn for it, and for the screen again.
const PAPER = 640;

function fitCharts(forPaper) {
  for (const { width, paint } of drawn.values()) if (width > PAPER) paint(forPaper ? PAPER : width);
}

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
