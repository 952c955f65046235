// What ops reach against what the hardware could do, by how much they compute per byte of DRAM.

const NAMED_OPS = 6;

function rooflineChart(region) {
  const { roof } = region;
  const ops = region.ops.filter((op) => op.intensity > 0 && op.tflops > 0);
  if (!roof || !roof.peaks_tflops.length || !ops.length) return null;
  const known = ops.reduce((sum, op) => sum + op.share, 0);
  const { figure } = chart({
    kind: "roofline",
    title: `Roofline of ${region.name || "the test"}`,
    label: `DRAM ${digits(roof.dram_gb_s)} GB/s; ` + roof.peaks_tflops.map(([name, peak]) => `${name} ${digits(peak)} TFLOP/s`).join(", ") +
      `; ${counted(ops.length, "op")} with ${percent(known)} of the time`,
    legend: [...boundLegend(ops), ["area: time", draw("circle", { class: "ghost", cx: 8, cy: 5, r: 4.5 })]],
    paint: (width) => paintRoofline(roof, ops, width),
    after: make("p", { class: "hint" },
      `Shown: ops with ${percent(known)} of the time; those without FLOPs or DRAM traffic have no place here. ` +
      "Colours are by what holds the cores that an op uses; roofs are those of the whole chip."),
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
  const box = { left: 48, right: width - 8, top: 22, bottom: height - 36, width };
  const x = logarithmic(xRange, [box.left, box.right]);
  const y = logarithmic(yRange, [box.bottom, box.top]);
  const longest = Math.max(...ops.map((op) => op.time_us));
  const circles = ops.map((op) => ({ op, x: x(op.intensity), y: y(op.tflops), r: 3 + 13 * Math.sqrt(op.time_us / longest) }));
  const ten = (range) => powersOfTen(...range);
  const plain = (ticks) => ticks.map((tick) => (tick < 1e-3 || tick >= 1e6 ? tick.toExponential(0) : grouped(String(tick))));
  const within = (place, low, high) => Math.min(Math.max(place, low), high);
  for (const circle of circles) {
    circle.x = within(circle.x, box.left + circle.r, box.right - circle.r);
    circle.y = within(circle.y, box.top + circle.r, box.bottom - circle.r);
  }
  return {
    height,
    shapes: [
      axisLeft(box, y, ten(yRange), "TFLOP/s", plain(ten(yRange))),
      axisBottom(box, x, ten(xRange), "FLOP per byte of DRAM", plain(ten(xRange))),
      roofLines(roof, xRange, yRange, x, y, box),
      circles.map((circle) => draw("circle", { class: `bubble ${boundKind(circle.op)}`, cx: circle.x, cy: circle.y, r: circle.r })),
      roofNames(roof, y, box),
      opNames(circles, box, peaks.map((peak) => y(peak))),
    ],
    points: circles.map((circle) => ({ x: circle.x, y: circle.y, lines: opLines(circle.op) })),
  };
}

function roofLines(roof, xRange, yRange, x, y, box) {
  const slope = roof.dram_gb_s / 1000;  // TFLOP/s at one FLOP per byte
  const top = Math.max(...roof.peaks_tflops.map(([, peak]) => peak));
  const start = Math.max(xRange[0], yRange[0] / slope);
  return [
    draw("line", { class: "roof", x1: x(start), y1: y(start * slope), x2: x(top / slope), y2: y(top) }),
    roof.peaks_tflops.map(([, peak]) => draw("line", { class: "roof", x1: x(Math.max(xRange[0], peak / slope)), x2: box.right, y1: y(peak), y2: y(peak) })),
  ];
}

function roofNames(roof, y, box) {
  const peaks = roof.peaks_tflops.map(([name, peak]) => ({ y: y(peak) - 4, text: `${name} ${digits(peak)}` }));
  return [
    spread(peaks, 12, box.top + 8, box.bottom).map((label) => draw("text", { class: "strong", x: box.right - 2, y: label.y, "text-anchor": "end" }, label.text)),
    draw("text", { class: "strong", x: box.left + 6, y: box.top + 10 }, `DRAM ${digits(roof.dram_gb_s)} GB/s`),
  ];
}

// Names of the longest ops, beside their circles, where they hide nothing.
function opNames(circles, box, roofs) {
  const taken = circles.map(({ x, y, r }) => [x - r, y - r, x + r, y + r]);
  roofs.forEach((y) => taken.push([box.right - 110, y - 16, box.right, y + 1]));
  taken.push([box.left, box.top, box.left + 120, box.top + 14]);
  const longest = [...circles].sort((one, other) => other.op.time_us - one.op.time_us).slice(0, NAMED_OPS);
  return longest.map(({ op, x, y, r }) => {
    const alone = circles.filter((circle) => circle.op.name === op.name).length === 1;
    const name = fitted(alone ? op.name : `${op.name} ${op.shape}`, 150);
    const half = textWidth(name) / 2;
    const spots = [[x + r + 3, y + 4], [x - r - 3 - 2 * half, y + 4], [x - half, y - r - 4], [x - half, y + r + 12]];
    return labelAt(name, spots, box, taken);
  });
}
