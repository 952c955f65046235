// What devices did during a call, one lane each: kernels, waits for others, the host; gaps are empty.

const SPAN = 18;
const MOST_LEVELS = 3;
const KINDS = { k: ["kernel", "dram"], w: ["waits for other devices", "compute"], h: ["host", "host"] };

function timelineChart(timeline) {
  const end = Math.max(...timeline.lanes.flatMap((lane) => lane.starts_us.map((start, place) => start + lane.durations_us[place])));
  if (!Number.isFinite(end) || end <= 0) return null;
  const view = { from: 0, to: end, end };
  const levels = new Map(timeline.lanes.map((lane) => [lane, levelsOfLane(lane)]));
  const kinds = Object.entries(KINDS).filter(([kind]) => timeline.lanes.some((lane) => lane.kinds.includes(kind)));
  const buttons = make("div", { class: "zoom" });
  const made = chart({
    kind: "timeline",
    title: `Timeline of ${timeline.region || "the test"}`,
    label: timeline.lanes.map((lane) => laneInWords(lane, end)).join("; "),
    legend: [...kinds.map(([, [name, kind]]) => [name, swatch(kind)]), ["gap", draw("rect", { class: "ghost", x: 2, y: 0.5, width: 12, height: 9 })]],
    paint: (width) => paintTimeline(timeline, levels, view, width),
    after: [buttons, make("p", { class: "hint" }, [timeline.shortened,
      "Click it, then: wheel or + and − zoom, drag or ← and → move, 0 shows all."].filter(Boolean).join(" ")),
      opened("Numbers", () => laneListing(timeline, end))],
  });
  made.plot.classList.add("pans");
  made.plot.setAttribute("tabindex", "0");
  moveByHand(made, view, buttons);
  return made.figure;
}

// Ops of one device overlap: one that starts before another ends is drawn below it.
function levelsOfLane(lane) {
  const ends = [];
  const ofSpans = lane.starts_us.map((start, place) => {
    const free = ends.findIndex((end) => end <= start);
    const level = free < 0 ? Math.min(ends.length, MOST_LEVELS - 1) : free;
    ends[level] = Math.max(ends[level] ?? 0, start + lane.durations_us[place]);
    return level;
  });
  return { ofSpans, height: SPAN * Math.max(1, ends.length) + 6 };
}

function paintTimeline(timeline, levels, view, width) {
  const names = Math.min(width * 0.2, Math.max(...timeline.lanes.map((lane) => textWidth(lane.device))) + 10);
  const heights = timeline.lanes.map((lane) => levels.get(lane).height);
  const box = { left: names, right: width - 6, top: 4, bottom: 4 + heights.reduce((sum, height) => sum + height, 0), width };
  const x = linear([view.from, view.to], [box.left, box.right]);
  const ticks = roundNumbers(view.from, view.to, Math.max(2, (box.right - box.left) / 90));
  const points = [];
  let top = box.top;
  const lanes = timeline.lanes.map((lane, row) => {
    const first = top + 1;
    top += heights[row];
    const spans = spansInView(lane, levels.get(lane).ofSpans, view, x, box).map((span) => {
      const above = first + span.level * SPAN;
      points.push({ x: (span.start + span.end) / 2, y: above + SPAN / 2, lines: spanLines(timeline, lane, span) });
      return spanShape(span, timeline.names[lane.names[span.place]], above);
    });
    return [draw("rect", { class: "ghost", x: box.left, width: box.right - box.left, y: first, height: heights[row] - 6 }),
      draw("text", { class: "strong", x: box.left - 6, y: first + 13, "text-anchor": "end" }, fitted(lane.device, names - 8)), spans];
  });
  return { height: box.bottom + 36, shapes: [axisBottom(box, x, ticks, "µs since the first start"), lanes], points };
}

// Spans that can be seen; those narrower than a pixel are drawn as one where they meet.
function spansInView(lane, levels, view, x, box) {
  const found = [];
  const lasts = [];
  lane.starts_us.forEach((from, place) => {
    const to = from + lane.durations_us[place];
    if (to < view.from || from > view.to) return;
    const span = { start: Math.max(box.left, x(from)), end: Math.min(box.right, x(to)), kind: lane.kinds[place], level: levels[place], place, count: 1, from, to };
    const last = lasts[span.level];
    if (last && last.kind === span.kind && span.end - last.start < 1.5) Object.assign(last, { end: Math.max(last.end, span.end), to, count: last.count + 1 });
    else found.push((lasts[span.level] = span));
  });
  return found;
}

function spanShape(span, name, top) {
  const width = Math.max(0.75, span.end - span.start - 0.5);
  const text = span.count === 1 && width > 30 ? fitted(name, width - 8) : "";
  return [
    draw("rect", { class: (KINDS[span.kind] ?? KINDS.k)[1], x: span.start, width, y: top, height: SPAN - 1 }),
    // Waits have stripes: they are told apart without colours.
    span.kind === "w" && width > 6 ? draw("path", { class: "grid", d: stripes(span.start, width, top, SPAN - 1) }) : null,
    text ? draw("text", { class: "on", x: span.start + 4, y: top + 12.5 }, text) : null,
  ];
}

function stripes(x, width, y, height) {
  let path = "";
  for (let at = 4; at < width; at += 6) path += `M${x + at} ${y}v${height}`;
  return path;
}

function spanLines(timeline, lane, span) {
  const [name] = KINDS[span.kind] ?? KINDS.k;
  const what = span.count > 1 ? `${span.count} spans` : timeline.names[lane.names[span.place]];
  return [`${lane.device}: ${what}`, `${name}, ${microseconds(span.to - span.from)} from ${microseconds(span.from)}`];
}

// Times of a lane by kind; the rest is gaps.
function laneTimes(lane, end) {
  const times = { k: 0, w: 0, h: 0 };
  lane.durations_us.forEach((duration, place) => (times[lane.kinds[place]] = (times[lane.kinds[place]] ?? 0) + duration));
  let [busy, reached] = [0, 0];
  lane.starts_us.forEach((start, place) => {
    const stop = start + lane.durations_us[place];
    busy += Math.max(0, stop - Math.max(start, reached));
    reached = Math.max(reached, stop);
  });
  return { ...times, gaps: Math.max(0, end - busy) };
}

function laneInWords(lane, end) {
  const times = laneTimes(lane, end);
  return `${lane.device}: kernels ${percent(times.k / end)}, waits ${percent(times.w / end)}, gaps ${percent(times.gaps / end)}`;
}

function laneListing(timeline, end) {
  const rows = timeline.lanes.map((lane) => ({ lane, times: laneTimes(lane, end) }));
  const column = (name, kind) => [name, ({ times }) => `${microseconds(times[kind])} (${percent(times[kind] / end)})`, "number"];
  return listing([["Device", ({ lane }) => lane.device], column("Kernels", "k"), column("Waits", "w"), column("Host", "h"), column("Gaps", "gaps"),
    ["Spans", ({ lane }) => String(lane.starts_us.length), "number"]], rows);
}

// Zoom and move by wheel, drag, keys and buttons. The wheel is the page's until the chart is used.
function moveByHand({ plot, repaint }, view, buttons) {
  const show = (from, to) => {
    const span = Math.min(view.end, Math.max(view.end / 5000, to - from));
    view.from = Math.max(0, Math.min(from, view.end - span));
    view.to = view.from + span;
    repaint();
  };
  const zoom = (factor, at = 0.5) => {
    const span = view.to - view.from;
    const middle = view.from + span * at;
    show(middle - span * factor * at, middle + span * factor * (1 - at));
  };
  const move = (part) => show(view.from + (view.to - view.from) * part, view.to + (view.to - view.from) * part);
  const all = () => show(0, view.end);
  const actions = { "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), "0": all,
    ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15) };

  plot.addEventListener("wheel", (event) => {
    if (document.activeElement !== plot && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const box = plot.getBoundingClientRect();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.clientX - box.left) / box.width);
  }, { passive: false });
  plot.addEventListener("keydown", (event) => {
    if (!actions[event.key] || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    actions[event.key]();
  }, { capture: true });
  let dragged = null;
  plot.addEventListener("pointerdown", (event) => {
    dragged = event.clientX;
    plot.focus({ preventScroll: true });
    plot.setPointerCapture(event.pointerId);
  });
  plot.addEventListener("pointermove", (event) => {
    if (dragged === null) return;
    move((dragged - event.clientX) / plot.getBoundingClientRect().width);
    dragged = event.clientX;
  });
  for (const kind of ["pointerup", "pointercancel"]) plot.addEventListener(kind, () => (dragged = null));
  const button = (text, name, action) => make("button", { type: "button", "aria-label": name, onclick: action }, text);
  buttons.append(button("−", "Zoom out", actions["-"]), button("+", "Zoom in", actions["+"]), button("←", "Earlier", actions.ArrowLeft),
    button("→", "Later", actions.ArrowRight), button("All", "Show all", all));
}
