// --- points over time: as the server keeps them (page_events.h) ---

let points = [], interval = 1, tip = null;  // the newest state, until it is time for a point
const shownPoints = () => tip ? points.concat([tip]) : points;

function pointOf(frame) {
  const point = { time: frame.time, step: frame.step, loss: frame.loss, accuracy: frame.accuracy,
    evaluation_accuracy: frame.evaluation_accuracy, rate: null, step_ms: null, gpu: null, gpu_memory: null, ranks: [] };
  const gpus = [];
  for (const rank of frame.ranks) {
    gpus.push(...rank.gpus);
    if (rank.role !== "trainer") continue;
    if (known(rank.samples_per_second)) point.rate = (point.rate || 0) + rank.samples_per_second;
    if (known(rank.step_ms)) point.step_ms = Math.max(point.step_ms || 0, rank.step_ms);
    const hundred = (share) => known(share) ? Math.round(100 * share) : null;
    point.ranks[rank.rank] = [
      known(rank.step_ms) ? rank.step_ms * (1 - (known(rank.peers_share) ? rank.peers_share : 0)) : null,
      hundred(rank.input_share), hundred(rank.peers_share), hundred(rank.cpu),
      overGpus(rank, "utilization", mean)];
  }
  const loads = gpus.map((gpu) => gpu.utilization).filter(known);
  const filled = gpus.map((gpu) => 100 * gpu.memory_used / gpu.memory_total).filter(known);
  if (loads.length > 0) point.gpu = mean(loads);
  if (filled.length > 0) point.gpu_memory = most(filled);
  return point;
}

function takeHistory(history) {
  points = history.points;
  interval = history.interval;
  if (tip && points.length > 0 && tip.time <= points[points.length - 1].time) tip = null;
}

function addPoint(frame) {
  const newest = points.length > 0 ? points[points.length - 1].time : -Infinity;
  if (frame.time <= newest) return;
  tip = pointOf(frame);
  if (frame.time - newest < interval) return;
  points.push(tip);
  tip = null;
  if (points.length < kMostPoints) return;
  points = points.filter((_, i) => i % 2 === 0);
  interval *= 2;
}

// --- curves ---

const kCurves = [
  { title: "loss", lines: [{ key: "loss", style: "c0" }] },
  { title: "accuracy", lines: [{ key: "accuracy", style: "c0", name: "training" },
    { key: "evaluation_accuracy", style: "c3", name: "evaluation" }] },
  { title: "samples/s", lines: [{ key: "rate", style: "c1" }] },
  { title: "step, ms", lines: [{ key: "step_ms", style: "c2" }] },
  { title: "GPU, %", lines: [{ key: "gpu", style: "c1", name: "load" }, { key: "gpu_memory", style: "c2", name: "memory" }], from: 0 }];
let pointer = null;  // share of a chart's width

function ticks(low, high) {
  const raw = (high - low) / 4, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw) || raw;
  const all = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) all.push(Math.abs(v) < step * 1e-6 ? 0 : v);
  return all;
}

const has = (curve, p) => curve.lines.some((line) => known(p[line.key]));

// Little noise must not look like much.
function rangeOfCurve(curve, all) {
  let low = Infinity, high = -Infinity;
  for (const p of all) {
    for (const { key } of curve.lines) if (known(p[key])) { low = Math.min(low, p[key]); high = Math.max(high, p[key]); }
  }
  const room = Math.max((high - low) * 0.05, Math.abs(high) * 0.02, 1e-9);
  low = low >= 0 ? Math.max(0, low - room) : low - room;
  return [known(curve.from) ? curve.from : low, high + room];
}

function pathOf(all, key, x, y) {
  let path = "";
  for (const p of all) if (known(p[key])) path += (path ? "L" : "M") + x(p.time).toFixed(1) + " " + y(p[key]).toFixed(1);
  return path;
}

function captionOf(curve, point) {
  return curve.lines.filter(({ key }) => known(point[key]))
    .map(({ key, name }) => (name ? name + " " : "") + rounded(point[key])).join(", ");
}

// The newest point, with a value of another line that is older.
function newestOf(curve, with_value) {
  const newest = { ...with_value[with_value.length - 1] };
  for (const { key } of curve.lines) {
    for (let i = with_value.length - 1; i >= 0 && !known(newest[key]); --i) newest[key] = with_value[i][key];
  }
  return newest;
}

function drawCurve(curve) {
  const all = shownPoints(), with_value = all.filter((p) => has(curve, p));
  curve.figure.hidden = with_value.length === 0;
  if (with_value.length === 0) return;
  const width = curve.svg.clientWidth || 300, height = 150, left = 46, bottom = 18, top = 6, right = 4;
  const t0 = all[0].time, t1 = Math.max(all[all.length - 1].time, t0 + 1);
  const [low, high] = rangeOfCurve(curve, with_value);
  const x = (t) => left + (width - left - right) * (t - t0) / (t1 - t0);
  const y = (v) => top + (height - top - bottom) * (high - v) / (high - low);
  const parts = [];
  for (const v of ticks(low, high)) {
    parts.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y(v), y2: y(v) }));
    const text = svg("text", { x: left - 6, y: y(v) + 4, "text-anchor": "end" });
    text.textContent = short(v);
    parts.push(text);
  }
  for (const [t, anchor] of [[t0, "start"], [t1, "end"]]) {
    const text = svg("text", { x: x(t), y: height - 3, "text-anchor": anchor });
    text.textContent = ago(t1 - t);
    parts.push(text);
  }
  for (const { key, style } of curve.lines) {
    const path = pathOf(all, key, x, y);
    if (path) parts.push(svg("path", { class: "curve " + style, d: path }));
  }
  let shown = newestOf(curve, with_value), when = "";
  if (pointer !== null) {
    const t = t0 + (t1 - t0) * Math.min(1, Math.max(0, (pointer * width - left) / (width - left - right)));
    shown = with_value.reduce((best, p) => Math.abs(p.time - t) < Math.abs(best.time - t) ? p : best);
    when = (known(shown.step) ? "step " + shown.step : clock(shown.time)) + ": ";
    parts.push(svg("line", { class: "mark", x1: x(shown.time), x2: x(shown.time), y1: top, y2: height - bottom }));
  }
  curve.value.textContent = when + captionOf(curve, shown);
  curve.svg.setAttribute("viewBox", "0 0 " + width + " " + height);
  curve.svg.replaceChildren(...parts);
}

function makeCurves() {
  for (const curve of kCurves) {
    curve.figure = element("figure");
    curve.figure.hidden = true;
    const caption = element("figcaption", curve.title);
    curve.value = element("span");
    caption.append(curve.value);
    curve.svg = svg("svg", { role: "img", "aria-label": curve.title + " over time" });
    curve.svg.addEventListener("pointermove", (event) => {
      pointer = event.offsetX / curve.svg.clientWidth;
      drawCurves();
    });
    curve.svg.addEventListener("pointerleave", () => { pointer = null; drawCurves(); });
    curve.figure.append(caption, curve.svg);
    at("curves").append(curve.figure);
  }
}

function drawCurves() { kCurves.forEach(drawCurve); }
