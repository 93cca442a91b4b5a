// The page of a job, or of fleetd's jobs: draws what the server sends. Everything from a job (names,
// log lines) becomes text, never markup.
"use strict";

const at = (id) => document.getElementById(id);
const kMostPoints = 480, kMostRows = 256, kMostLogLines = 2000;

function element(name, text, kind) {
  const one = document.createElement(name);
  if (text !== undefined && text !== null) one.textContent = text;
  if (kind) one.className = kind;
  return one;
}

function svg(name, attributes) {
  const one = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) one.setAttribute(key, attributes[key]);
  return one;
}

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

function short(value) {
  if (!known(value)) return "-";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(2);
  return String(Number(value.toPrecision(size >= 1000 ? 6 : 4)));
}

const rounded = (value) => short(known(value) && Math.abs(value) >= 100 ? Math.round(value) : known(value) ? Number(value.toPrecision(3)) : value);

const percent = (share) => known(share) ? String(Math.round(100 * share)) : "-";

function bytes(value) {
  if (!known(value)) return "-";
  const mib = value / 1048576;
  return mib < 1000 ? Math.round(mib) + " M" : (mib / 1024).toFixed(1) + " G";
}

function duration(seconds) {
  if (!known(seconds)) return "-";
  const s = Math.max(0, Math.floor(seconds)), two = (n) => String(n).padStart(2, "0");
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  return h > 0 ? h + ":" + two(m) + ":" + two(s % 60) : m + ":" + two(s % 60);
}

let ended = false;

function ago(seconds) {
  return seconds >= 1 ? "-" + duration(seconds) : ended ? "end" : "now";
}

function clock(time) {
  return new Date(1000 * time).toLocaleTimeString();
}

function setState(text, kind) {
  at("state").textContent = text;
  at("state").className = "state" + (kind ? " " + kind : "");
}

// --- points over time: as the server keeps them (live_view.h) ---

let points = [], stride = 1, skipped = 0;

function pointOf(frame) {
  const point = { time: frame.time, step: frame.step, loss: frame.loss, rate: null, step_ms: null, ranks: [] };
  for (const rank of frame.ranks) {
    if (rank.role !== "trainer") continue;
    if (known(rank.samples_per_second)) point.rate = (point.rate || 0) + rank.samples_per_second;
    if (known(rank.step_ms)) point.step_ms = Math.max(point.step_ms || 0, rank.step_ms);
    const hundred = (share) => known(share) ? Math.round(100 * share) : null;
    point.ranks.push([
      known(rank.step_ms) ? rank.step_ms * (1 - (known(rank.peers_share) ? rank.peers_share : 0)) : null,
      hundred(rank.input_share), hundred(rank.peers_share), hundred(rank.cpu)]);
  }
  return point;
}

function addPoint(frame) {
  if (points.length > 0 && frame.time <= points[points.length - 1].time) return;
  if (++skipped < stride) return;
  skipped = 0;
  points.push(pointOf(frame));
  const thin = () => { points = points.filter((_, i) => i % 2 === (points.length + 1) % 2); stride *= 2; };
  if (points.length >= kMostPoints) thin();
}

// --- curves ---

const kCurves = [
  { key: "loss", title: "loss", style: "c0" },
  { key: "rate", title: "samples/s", style: "c1" },
  { key: "step_ms", title: "step, ms", style: "c2" }];
let pointer = null;  // share of a chart's width

function ticks(low, high) {
  const raw = (high - low) / 4, power = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= raw) || raw;
  const all = [];
  for (let v = Math.ceil(low / step) * step; v <= high + step * 1e-9; v += step) all.push(Math.abs(v) < step * 1e-6 ? 0 : v);
  return all;
}

function drawCurve(curve) {
  const with_value = points.filter((p) => known(p[curve.key]));
  curve.figure.hidden = with_value.length === 0;
  if (with_value.length === 0) return;
  const width = curve.svg.clientWidth || 300, height = 150, left = 46, bottom = 18, top = 6, right = 4;
  const t0 = points[0].time, t1 = Math.max(points[points.length - 1].time, t0 + 1);
  let low = Infinity, high = -Infinity;
  for (const p of with_value) { low = Math.min(low, p[curve.key]); high = Math.max(high, p[curve.key]); }
  // Little noise must not look like much.
  const room = Math.max((high - low) * 0.05, Math.abs(high) * 0.02, 1e-9);
  low = low >= 0 ? Math.max(0, low - room) : low - room; high += room;
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
  let path = "", pen = false;
  for (const p of points) {
    if (known(p[curve.key])) { path += (pen ? "L" : "M") + x(p.time).toFixed(1) + " " + y(p[curve.key]).toFixed(1); pen = true; }
  }
  parts.push(svg("path", { class: "curve " + curve.style, d: path }));
  let shown = with_value[with_value.length - 1], when = "";
  if (pointer !== null) {
    const t = t0 + (t1 - t0) * Math.min(1, Math.max(0, (pointer * width - left) / (width - left - right)));
    shown = with_value.reduce((best, p) => Math.abs(p.time - t) < Math.abs(best.time - t) ? p : best);
    when = (known(shown.step) ? "step " + shown.step : clock(shown.time)) + ": ";
    parts.push(svg("line", { class: "mark", x1: x(shown.time), x2: x(shown.time), y1: top, y2: height - bottom }));
  }
  curve.value.textContent = when + rounded(shown[curve.key]);
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

// --- ranks over time ---

const kHeats = [
  { name: "own time of a step, ms", unit: " ms", from: null },
  { name: "waiting for input, %", unit: " %", from: 0 },
  { name: "waiting for peers, %", unit: " %", from: 0 },
  { name: "CPU, % of a core", unit: " %", from: 0 }];
let heatChosen = false, heatCell = null;

// From calm to hot, on both backgrounds.
const kColours = [[38, 70, 120], [46, 125, 150], [120, 175, 120], [235, 195, 80], [225, 110, 50]];

function colour(share) {
  const place = Math.min(1, Math.max(0, share)) * (kColours.length - 1), i = Math.min(Math.floor(place), kColours.length - 2);
  return kColours[i].map((c, k) => Math.round(c + (kColours[i + 1][k] - c) * (place - i)));
}

function rangeOf(kind) {
  let low = Infinity, high = -Infinity;
  const all = [];
  for (const p of points) for (const r of p.ranks) if (known(r[kind])) all.push(r[kind]);
  if (all.length === 0) return null;
  for (const v of all) low = Math.min(low, v);
  all.sort((a, b) => a - b);
  high = all[Math.floor(0.99 * (all.length - 1))];  // one slow step is no scale
  if (kHeats[kind].from !== null) low = kHeats[kind].from;
  return [low, Math.max(high, low + Math.max(Math.abs(low) * 0.2, 1e-3), kHeats[kind].from === null ? 0 : 10)];
}

function drawHeat() {
  const ranks = points.reduce((most, p) => Math.max(most, p.ranks.length), 0);
  let kind = Number(at("heat-kind").value);
  if (!heatChosen && !points.some((p) => p.ranks.some((r) => known(r[kind])))) kind = 3;
  at("heat-kind").value = String(kind);
  const range = ranks > 0 && points.length > 1 ? rangeOf(kind) : null;
  at("over-time").hidden = ranks === 0 || points.length < 2;
  const canvas = at("heat");
  if (at("over-time").hidden) return;
  const columns = Math.min(kMostPoints, Math.max(60, canvas.clientWidth)), rows = Math.min(ranks, 256);
  const picture = new ImageData(columns, rows);
  const t0 = points[0].time, t1 = points[points.length - 1].time;
  let i = 0;
  for (let x = 0; range && x < columns; ++x) {
    const t = t0 + (t1 - t0) * (x + 1) / columns;
    while (i + 1 < points.length && points[i].time < t - 1e-9) ++i;
    for (let y = 0; y < rows; ++y) {
      let value = null;  // the largest of the ranks that share the row
      const end = Math.max(Math.floor((y + 1) * ranks / rows), Math.floor(y * ranks / rows) + 1);
      for (let r = Math.floor(y * ranks / rows); r < end; ++r) {
        const v = points[i].ranks[r] ? points[i].ranks[r][kind] : null;
        if (known(v)) value = value === null ? v : Math.max(value, v);
      }
      if (value === null) continue;
      const [red, green, blue] = colour((value - range[0]) / (range[1] - range[0]));
      picture.data.set([red, green, blue, 255], 4 * (y * columns + x));
    }
  }
  canvas.width = columns;
  canvas.height = rows;
  canvas.style.height = Math.min(360, Math.max(60, rows * (ranks <= 16 ? 16 : 6))) + "px";
  canvas.getContext("2d").putImageData(picture, 0, 0);
  at("heat-low").textContent = range ? rounded(range[0]) + kHeats[kind].unit : "not known";
  at("heat-high").textContent = range ? rounded(range[1]) + kHeats[kind].unit : "";
  at("heat-scale").style.background = "linear-gradient(to right," + kColours.map((c) => "rgb(" + c.join(",") + ")").join(",") + ")";
  nameCell(kind, ranks);
}

function nameCell(kind, ranks) {
  const text = at("heat-at");
  if (!heatCell) { text.textContent = ranks > 1 ? "rank 0 is at the top" : ""; return; }
  const t = points[0].time + (points[points.length - 1].time - points[0].time) * heatCell[0];
  const r = Math.min(ranks - 1, Math.floor(heatCell[1] * ranks));
  const point = points.find((p) => p.time >= t) || points[points.length - 1];
  const value = point.ranks[r] ? point.ranks[r][kind] : null;
  text.textContent = "rank " + r + " at " + clock(point.time) + ": " + rounded(value) + kHeats[kind].unit;
}

function makeHeat() {
  kHeats.forEach((heat, i) => {
    const option = element("option", heat.name);
    option.value = String(i);
    at("heat-kind").append(option);
  });
  at("heat-kind").addEventListener("change", () => { heatChosen = true; drawHeat(); });
  at("heat").addEventListener("pointermove", (event) => {
    heatCell = [event.offsetX / at("heat").clientWidth, event.offsetY / at("heat").clientHeight];
    drawHeat();
  });
  at("heat").addEventListener("pointerleave", () => { heatCell = null; drawHeat(); });
}

// --- the job now ---

function showFacts(frame) {
  const rate = frame.ranks.reduce((sum, r) => sum + (known(r.samples_per_second) ? r.samples_per_second : 0), 0);
  const facts = [["running for", duration(frame.running)],
    ["nodes, ranks", frame.nnodes + ", " + frame.world_size]];
  if (frame.generation > 1) facts.push(["generation", frame.generation]);
  if (known(frame.step)) facts.push(["step", frame.step + (frame.target > 0 ? " of " + frame.target : "")]);
  if (known(frame.loss)) facts.push(["loss", rounded(frame.loss)]);
  if (rate > 0) facts.push(["samples/s", rounded(rate)]);
  if (known(frame.seconds_left) && !ended) facts.push(["time left", duration(frame.seconds_left)]);
  at("facts").replaceChildren(...facts.map(([name, value]) => {
    const one = element("div");
    one.append(element("span", name), element("b", value));
    return one;
  }));
  const share = known(frame.step) && frame.target > 0 ? Math.min(1, frame.step / frame.target) : null;
  at("progress").hidden = share === null;
  if (share !== null) at("progress-bar").style.width = (100 * share).toFixed(2) + "%";
}

function showBottleneck(bottleneck) {
  at("bottleneck").hidden = !bottleneck;
  if (!bottleneck) return;
  const causes = bottleneck.causes || [];
  at("bottleneck-line").textContent = bottleneck.line.replace(/^bottleneck: /, "");
  const parts = causes.map((cause) => [cause.kind, cause.share]).concat([["compute", bottleneck.compute]]);
  const other = 1 - parts.reduce((total, [, share]) => total + share, 0);
  if (other >= 0.005) parts.push(["other", other]);
  const bar = [], legend = [];
  for (const [name, share] of parts) {
    if (!known(share) || share <= 0) continue;
    const part = element("div", null, name);
    part.style.width = (100 * share).toFixed(1) + "%";
    bar.push(part);
    const entry = element("li");
    entry.append(element("i", null, name), name + " " + Math.round(100 * share) + " %");
    legend.push(entry);
  }
  at("bottleneck-bar").replaceChildren(...bar);
  at("bottleneck-legend").replaceChildren(...legend);
}

const overGpus = (rank, key, together) => {
  const all = rank.gpus.map((gpu) => gpu[key]).filter(known);
  return all.length === 0 ? null : together(all);
};
const sum = (all) => all.reduce((a, b) => a + b, 0), most = (all) => Math.max(...all);
const kColumns = [
  { title: "rank", get: (r) => r.rank, text: (v, r) => (r.role === "server" ? "server " : "") + v },
  { title: "node", get: (r) => r.node_rank, text: String },
  { title: "step", get: (r) => r.step, text: (v) => known(v) ? String(v) : "-" },
  { title: "step ms", get: (r) => r.step_ms, text: rounded },
  { title: "samples/s", get: (r) => r.samples_per_second, text: rounded },
  { title: "input %", get: (r) => r.input_share, text: percent },
  { title: "peers %", get: (r) => r.peers_share, text: percent },
  { title: "loss", get: (r) => r.loss, text: rounded },
  { title: "CPU %", get: (r) => r.cpu, text: percent },
  { title: "memory", get: (r) => r.memory, text: bytes },
  { title: "GPU %", get: (r) => overGpus(r, "utilization", (all) => sum(all) / all.length), text: rounded },
  { title: "GPU memory", get: (r) => overGpus(r, "memory_used", sum), text: bytes },
  { title: "MHz", get: (r) => overGpus(r, "clock_mhz", most), text: rounded },
  { title: "W", get: (r) => overGpus(r, "power_watts", sum), text: rounded },
  { title: "°C", get: (r) => overGpus(r, "celsius", most), text: rounded },
  { title: "slowed by", get: () => null, text: (_, r) => r.gpus.map((g) => g.slowed_by).filter(Boolean).join(", ") || "-",
    any: (r) => r.gpus.some((g) => g.slowed_by) }];
let sortBy = 0, lastFrame = null;

function showRanks(frame) {
  const shown = kColumns.filter((c, i) => i === 0 || frame.ranks.some(c.any || ((r) => known(c.get(r)))));
  const by = kColumns[sortBy];
  const ranks = sortBy === 0 ? frame.ranks : [...frame.ranks].sort((a, b) => {
    const one = by.get(a), other = by.get(b);
    return known(one) && known(other) ? other - one : (known(other) ? 1 : 0) - (known(one) ? 1 : 0);
  });
  const head = element("tr");
  for (const column of shown) {
    const cell = element("th"), button = element("button", column.title);
    button.dataset.sort = String(kColumns.indexOf(column));
    if (column === by) cell.setAttribute("aria-sort", sortBy === 0 ? "ascending" : "descending");
    cell.append(button);
    head.append(cell);
  }
  const rows = ranks.slice(0, kMostRows).map((rank) => {
    const row = element("tr", null, rank.slowest ? "slow" : "");
    for (const column of shown) {
      const text = column.text(column.get(rank), rank);
      const cell = element("td", column === kColumns[0] ? null : text);
      if (column === kColumns[0]) {
        const button = element("button", text + (rank.slowest ? " (slowest)" : ""));
        button.dataset.log = rank.role + " " + rank.rank;
        button.title = "show its log";
        cell.append(button);
      }
      row.append(cell);
    }
    return row;
  });
  // Replacing the table takes the keyboard's place in it away.
  const focused = document.activeElement && at("ranks").contains(document.activeElement) ? { ...document.activeElement.dataset } : null;
  at("ranks").replaceChildren(head, ...rows);
  if (focused) {
    const again = [...at("ranks").querySelectorAll("button")].find((b) => b.dataset.sort === focused.sort && b.dataset.log === focused.log);
    if (again) again.focus({ preventScroll: true });
  }
  at("ranks-left").hidden = ranks.length <= kMostRows;
  at("ranks-left").textContent = "and " + (ranks.length - kMostRows) + " more: sort to see others first";
}

at("ranks").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.log) return openLog(button.dataset.log, true);
  sortBy = Number(button.dataset.sort);
  if (lastFrame) showRanks(lastFrame);
});

function showFrame(frame) {
  lastFrame = frame;
  at("job").hidden = false;
  at("name").textContent = frame.job_id;
  document.title = frame.job_id + " - fleetrun";
  setState("running", "good");
  showFacts(frame);
  showBottleneck(frame.bottleneck);
  showRanks(frame);
  listLogs(frame);
}

// --- logs ---

let logSource = null, listed = "";

function listLogs(frame) {
  const names = frame.ranks.map((rank) => rank.role + " " + rank.rank);
  if (names.join() === listed) return;
  listed = names.join();
  const chosen = at("log-rank").value;
  at("log-rank").replaceChildren(element("option", "no rank"), ...names.map((name) => {
    const option = element("option", name.replace("trainer", "rank"));
    option.value = name;
    return option;
  }));
  at("log-rank").firstChild.value = "";
  at("log-rank").value = names.includes(chosen) ? chosen : "";
  if (chosen === "" && names.length > 0) openLog(names[0], false);
}

function openLog(name, scroll) {
  if (logSource) logSource.close();
  logSource = null;
  at("log-rank").value = name;
  const log = at("log");
  log.replaceChildren();
  log.hidden = name === "";
  if (name === "") return;
  const [role, rank] = name.split(" ");
  logSource = new EventSource("log?rank=" + rank + (role === "server" ? "&server=1" : ""));
  logSource.addEventListener("open", () => log.replaceChildren());  // it is sent again
  logSource.addEventListener("lines", (event) => {
    const { text, error } = JSON.parse(event.data);
    addLines(text, error ? "error" : "");
  });
  logSource.addEventListener("refused", (event) => {
    addLines(JSON.parse(event.data).text + "\n", "error");
    logSource.close();
  });
  if (scroll) log.scrollIntoView({ block: "nearest" });
}

function addLines(text, kind) {
  const log = at("log");
  for (const line of text.split("\n").slice(0, -1)) log.append(element("div", line === "" ? "\u00a0" : line, kind));
  while (log.childElementCount > kMostLogLines) log.firstChild.remove();
  followLog();
}

at("log-rank").addEventListener("change", () => openLog(at("log-rank").value, false));
// Only a person scrolls up.
let lastTop = 0;
at("log").addEventListener("scroll", () => {
  const log = at("log"), bottom = log.scrollTop + log.clientHeight >= log.scrollHeight - 4;
  if (bottom) at("log-follow").checked = true;
  if (!bottom && log.scrollTop < lastTop) at("log-follow").checked = false;
  lastTop = log.scrollTop;
});

function followLog() {
  if (at("log-follow").checked) at("log").scrollTop = at("log").scrollHeight;
}

// --- fleetd's jobs ---

function showJobs({ host, jobs }) {
  at("jobs").hidden = false;
  at("name").textContent = "fleetd on " + host;
  document.title = "fleetd on " + host;
  const running = jobs.filter((job) => !job.ended).length;
  setState(running === 1 ? "1 job runs" : running + " jobs run", running > 0 ? "good" : "");
  at("no-jobs").hidden = jobs.length > 0;
  at("job-table").hidden = jobs.length === 0;
  const head = element("tr");
  for (const [title, kind] of [["job", "words"], ["state", "words"], ["nodes"], ["ranks"], ["step"], ["loss"], ["started"]]) {
    head.append(element("th", title, kind));
  }
  const rows = [...jobs].reverse().map((job) => {
    const row = element("tr"), name = element("td", null, "words"), link = element("a", job.job_id);
    link.href = "jobs/" + Number(job.number) + "/";
    name.append(link);
    const step = known(job.step) ? job.step + (job.target > 0 ? "/" + job.target : "") : "-";
    row.append(name, element("td", job.state, "words"), element("td", job.nnodes), element("td", job.world_size),
      element("td", step), element("td", known(job.loss) ? rounded(job.loss) : "-"),
      element("td", job.started > 0 ? new Date(1000 * job.started).toLocaleString() : "-"));
    return row;
  });
  at("job-table").replaceChildren(head, ...rows);
}

// --- the stream ---

function connect() {
  const events = new EventSource("events");
  const on = (name, handle) => events.addEventListener(name, (event) => handle(JSON.parse(event.data)));
  on("history", (history) => { points = history.points; stride = 1; skipped = 0; drawCurves(); drawHeat(); });
  on("frame", (frame) => { addPoint(frame); showFrame(frame); drawCurves(); drawHeat(); });
  on("silence", (silence) => { at("job").hidden = false; setState(silence.text, "bad"); });
  on("ended", (outcome) => {
    at("job").hidden = false;
    ended = true;
    if (lastFrame) showFacts(lastFrame);
    drawCurves();
    const good = outcome.state === "succeeded";
    setState(outcome.state, good ? "good" : "bad");
    at("outcome").hidden = outcome.text === "";
    at("outcome-state").textContent = "Verdict: " + outcome.state;
    at("outcome-text").textContent = outcome.text;
  });
  on("jobs", showJobs);
  events.addEventListener("error", () => setState("no connection: is it still running?", "bad"));
}

at("back").hidden = !/\/jobs\/[0-9]+\/$/.test(location.pathname);
makeCurves();
makeHeat();
addEventListener("resize", () => { drawCurves(); if (points.length > 1) drawHeat(); followLog(); });
at("log-follow").addEventListener("change", followLog);
connect();
