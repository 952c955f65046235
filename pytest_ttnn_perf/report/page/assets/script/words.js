// Numbers and names as people read them.

// Four significant digits, without an exponent where that can be read.
function digits(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.floor(Math.log10(Math.abs(Number(value.toPrecision(4)))));
  if (size < -5 || size >= 15) return value.toExponential(3);
  return grouped(Number(value.toPrecision(4)).toFixed(Math.max(0, 3 - size)));
}

// Six digits, for what is close to 1; what is short of 1 never reads as 1.
function accuracy(value) {
  const text = String(Number(value.toPrecision(6)));
  return text === "1" && value < 1 ? ">0.999999" : text;
}

function grouped(text) {
  const [whole, fraction] = text.split(".");
  const spaced = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return fraction ? `${spaced}.${fraction}` : spaced;
}

// A terminal has us for µs.
const withUnit = (text, unit) => (unit ? `${text} ${unit === "us" ? "µs" : unit}` : text);

// A number of a metric, in the unit that it is shown in.
function amount(metric, value) {
  if (value === null || value === undefined) return "–";
  if (Number.isInteger(value) && metric.scale === 1) return withUnit(grouped(String(value)), metric.unit);
  const shown = value * metric.scale;
  if (!metric.unit && Math.abs(shown) <= 1 && Math.abs(shown) >= 0.5) return accuracy(shown);
  return withUnit(digits(shown), metric.unit);
}

const microseconds = (value) => withUnit(value === null ? "–" : grouped(value.toFixed(Math.abs(value) < 100 ? 2 : 1)), "µs");
const percent = (fraction) => `${(fraction * 100).toFixed(1)} %`;

function signed(text, value) {
  const minus = text.replace("-", "−");
  return value > 0 ? `+${minus}` : minus;
}

const signedPercent = (fraction) => signed(percent(fraction), Number(fraction.toFixed(4)));
const signedMicroseconds = (value) => signed(microseconds(value), Number(value.toFixed(2)));
const counted = (count, noun) => `${grouped(String(count))} ${noun}${count === 1 ? "" : "s"}`;
const shortCommit = (commit) => (/^[0-9a-f]{12,}$/.test(commit) ? commit.slice(0, 9) : commit);
const moment = (time) => time.slice(0, 16).replace("T", " ");

// How a run is told apart from others, in lines.
function runLines(run) {
  const code = [shortCommit(run.commit), run.branch].filter(Boolean).join(" on ");
  return [run.label, code, run.host, moment(run.started_at)].filter(Boolean);
}
