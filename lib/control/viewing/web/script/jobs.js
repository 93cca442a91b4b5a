// --- fleetd's jobs ---

const kListCurves = [
  { title: "loss", at: 1, style: "c0" }, { title: "accuracy", at: 2, style: "c0" }, { title: "samples/s", at: 3, style: "c1" },
  { title: "GPU, %", at: 4, style: "c1" }];
const kListHeight = 70;
let cards = new Map(), listCurves = new Map();  // by the job's number

function cardOf(number) {
  if (cards.has(number)) return cards.get(number);
  const card = { all: element("article"), name: element("a"), state: element("span"), bar: element("div", null, "progress"),
    done: element("div"), facts: element("p", null, "quiet"), svg: svg("svg", { role: "img" }), value: element("p", null, "quiet") };
  card.name.href = "jobs/" + number + "/";
  const title = element("h2");
  title.append(card.name);
  card.bar.append(card.done);
  card.all.append(title, card.state, card.bar, card.svg, card.value, card.facts);
  cards.set(number, card);
  return card;
}

function drawListCurve(number) {
  const card = cardOf(number), kind = kListCurves[Number(at("list-kind").value) || 0];
  const all = (listCurves.get(number) || []).filter((p) => known(p[kind.at]));
  card.svg.style.display = card.value.style.display = all.length > 1 ? "" : "none";
  if (all.length < 2) return;
  const width = card.svg.clientWidth || 300, t0 = all[0][0], t1 = Math.max(all[all.length - 1][0], t0 + 1);
  const values = all.map((p) => p[kind.at]), low = Math.min(...values), high = Math.max(...values, low + 1e-9);
  const d = all.map((p) => (2 + (width - 4) * (p[0] - t0) / (t1 - t0)).toFixed(1) + " " +
    (4 + (kListHeight - 8) * (high - p[kind.at]) / (high - low)).toFixed(1)).join("L");
  card.svg.setAttribute("viewBox", "0 0 " + width + " " + kListHeight);
  card.svg.setAttribute("aria-label", kind.title + " over time");
  card.svg.replaceChildren(svg("path", { class: "curve " + kind.style, d: "M" + d }));
  card.value.textContent = kind.title + " " + rounded(values[values.length - 1]) + ", from " + rounded(low) + " to " + rounded(high) +
    " in " + duration(t1 - t0);
}

function showCard(job) {
  const card = cardOf(Number(job.number)), facts = [];
  card.name.textContent = job.job_id;
  const bad = job.ended && job.state !== "succeeded";
  card.state.textContent = job.state + (job.failed ? ": " + job.failed.role.replace("trainer", "rank") + " " + job.failed.rank : "");
  card.state.className = "state " + (bad ? "bad" : "good");
  card.bar.style.display = known(job.step) && job.target > 0 ? "" : "none";
  if (job.target > 0) card.done.style.width = (100 * Math.min(1, job.step / job.target)).toFixed(2) + "%";
  if (known(job.step)) facts.push("step " + job.step + (job.target > 0 ? " of " + job.target : ""));
  if (known(job.loss)) facts.push("loss " + rounded(job.loss));
  if (known(job.seconds_left)) facts.push(duration(job.seconds_left) + " left");
  facts.push(job.nnodes + (job.nnodes === 1 ? " node" : " nodes"), job.world_size + (job.world_size === 1 ? " rank" : " ranks"));
  if (job.started > 0) facts.push("since " + new Date(1000 * job.started).toLocaleString());
  card.facts.textContent = facts.join(", ");
  return card.all;
}

function showJobs({ host, jobs }) {
  at("jobs").hidden = false;
  at("name").textContent = "fleetd on " + host;
  document.title = "fleetd on " + host;
  const running = jobs.filter((job) => !job.ended).length;
  setState(running === 1 ? "1 job runs" : running + " jobs run", running > 0 ? "good" : "");
  at("no-jobs").hidden = jobs.length > 0;
  const numbers = new Set(jobs.map((job) => Number(job.number)));
  for (const number of [...cards.keys()]) if (!numbers.has(number)) cards.delete(number);
  const shown = [...jobs].reverse().map(showCard), list = at("job-list");
  if (shown.length !== list.childElementCount || shown.some((card, i) => list.children[i] !== card)) {
    list.replaceChildren(...shown);
    cards.forEach((_, number) => drawListCurve(number));
  }
}

function showListCurves({ jobs }) {
  listCurves = new Map(jobs.map((job) => [Number(job.number), job.points]));
  at("list-title").hidden = !jobs.some((job) => job.points.some((p) => kListCurves.some((kind) => known(p[kind.at]))));
  cards.forEach((_, number) => drawListCurve(number));
}

function makeList() {
  kListCurves.forEach((kind, i) => {
    const option = element("option", kind.title);
    option.value = String(i);
    at("list-kind").append(option);
  });
  at("list-kind").addEventListener("change", () => cards.forEach((_, number) => drawListCurve(number)));
}
