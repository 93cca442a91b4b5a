// --- ranks over time ---

const kHeats = [
  { name: "own time of a step, ms", unit: " ms", from: null },
  { name: "waiting for input, %", unit: " %", from: 0 },
  { name: "waiting for peers, %", unit: " %", from: 0 },
  { name: "CPU, % of a core", unit: " %", from: 0 },
  { name: "GPU load, %", unit: " %", from: 0 }];
const kDefaultHeats = [0, 4, 3];  // the first one with values
let heatChosen = false, heatCell = null;

// From calm to hot, on both backgrounds.
const kColours = [[38, 70, 120], [46, 125, 150], [120, 175, 120], [235, 195, 80], [225, 110, 50]];

function colour(share) {
  const place = Math.min(1, Math.max(0, share)) * (kColours.length - 1), i = Math.min(Math.floor(place), kColours.length - 2);
  return kColours[i].map((c, k) => Math.round(c + (kColours[i + 1][k] - c) * (place - i)));
}

// The server leaves the ranks of some points out.
const pointsWithRanks = () => shownPoints().filter((p) => p.ranks && p.ranks.length > 0);
const heatValue = (point, rank, kind) => point.ranks[rank] && known(point.ranks[rank][kind]) ? point.ranks[rank][kind] : null;

function rangeOf(points, kind) {
  let low = Infinity, high = -Infinity;
  const all = [];
  for (const p of points) for (const r of p.ranks) if (r && known(r[kind])) all.push(r[kind]);
  if (all.length === 0) return null;
  for (const v of all) low = Math.min(low, v);
  all.sort((a, b) => a - b);
  high = all[Math.floor(0.99 * (all.length - 1))];  // one slow step is no scale
  if (kHeats[kind].from !== null) low = kHeats[kind].from;
  return [low, Math.max(high, low + Math.max(Math.abs(low) * 0.2, 1e-3), kHeats[kind].from === null ? 0 : 10)];
}

function drawHeat() {
  const points = pointsWithRanks(), ranks = points.reduce((most, p) => Math.max(most, p.ranks.length), 0);
  const measured = (kind) => points.some((p) => p.ranks.some((r) => r && known(r[kind])));
  let kind = Number(at("heat-kind").value);
  if (!heatChosen && !measured(kind)) kind = kDefaultHeats.find(measured) ?? 3;
  at("heat-kind").value = String(kind);
  const range = ranks > 0 && points.length > 1 ? rangeOf(points, kind) : null;
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
        const v = heatValue(points[i], r, kind);
        if (v !== null) value = value === null ? v : Math.max(value, v);
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
  nameCell(points, kind, ranks);
}

function nameCell(points, kind, ranks) {
  const text = at("heat-at");
  if (!heatCell) { text.textContent = ranks > 1 ? "rank 0 is at the top" : ""; return; }
  const t = points[0].time + (points[points.length - 1].time - points[0].time) * heatCell[0];
  const r = Math.min(ranks - 1, Math.floor(heatCell[1] * ranks));
  const point = points.find((p) => p.time >= t) || points[points.length - 1];
  text.textContent = "rank " + r + mark({ role: "trainer", rank: r }) + " at " + clock(point.time) + ": " +
    rounded(heatValue(point, r, kind)) + kHeats[kind].unit;
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
