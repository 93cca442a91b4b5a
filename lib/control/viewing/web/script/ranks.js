// --- the job now ---

function showFacts(frame) {
  const rate = frame.ranks.reduce((sum, r) => sum + (known(r.samples_per_second) ? r.samples_per_second : 0), 0);
  const facts = [["running for", duration(frame.running)],
    ["nodes, ranks", frame.nnodes + ", " + frame.world_size]];
  if (frame.generation > 1) facts.push(["generation", frame.generation]);
  if (known(frame.step)) facts.push(["step", frame.step + (frame.target > 0 ? " of " + frame.target : "")]);
  if (known(frame.loss)) facts.push(["loss", rounded(frame.loss)]);
  if (known(frame.accuracy)) facts.push(["accuracy", rounded(frame.accuracy)]);
  if (known(frame.evaluation_accuracy)) facts.push(["evaluated", rounded(frame.evaluation_accuracy)]);
  if (rate > 0) facts.push(["samples/s", rounded(rate)]);
  if (known(frame.seconds_left) && !outcome) facts.push(["time left", duration(frame.seconds_left)]);
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
const sum = (all) => all.reduce((a, b) => a + b, 0), most = (all) => Math.max(...all), mean = (all) => sum(all) / all.length;
// Of a trainer on parameter servers.
const use = (rank, key) => rank.servers ? rank.servers[key] : null;
const kColumns = [
  { title: "rank", get: (r) => r.rank, text: (v, r) => (r.role === "server" ? "server " : "") + v },
  { title: "node", get: (r) => r.node_rank, text: String },
  { title: "step", get: (r) => r.step, text: (v) => known(v) ? String(v) : "-" },
  { title: "step ms", get: (r) => r.step_ms, text: rounded },
  { title: "samples/s", get: (r) => r.samples_per_second, text: rounded },
  { title: "input %", get: (r) => r.input_share, text: percent },
  { title: "peers %", get: (r) => r.peers_share, text: percent },
  { title: "push wait %", get: (r) => use(r, "push_share"), text: percent },
  { title: "values wait %", get: (r) => use(r, "values_share"), text: percent },
  { title: "rows wait %", get: (r) => use(r, "rows_share"), text: percent },
  { title: "queue", get: (r) => use(r, "queue"), text: rounded },
  { title: "staleness", get: (r) => use(r, "staleness"), text: rounded },
  { title: "loss", get: (r) => r.loss, text: rounded },
  { title: "CPU %", get: (r) => r.cpu, text: percent },
  { title: "memory", get: (r) => r.memory, text: bytes },
  { title: "GPU %", get: (r) => overGpus(r, "utilization", mean), text: rounded },
  { title: "GPU memory", get: (r) => overGpus(r, "memory_used", sum), text: bytes },
  { title: "MHz", get: (r) => overGpus(r, "clock_mhz", most), text: rounded },
  { title: "W", get: (r) => overGpus(r, "power_watts", sum), text: rounded },
  { title: "°C", get: (r) => overGpus(r, "celsius", most), text: rounded },
  { title: "slowed by", get: () => null, text: (_, r) => r.gpus.map((g) => g.slowed_by).filter(Boolean).join(", ") || "-",
    any: (r) => r.gpus.some((g) => g.slowed_by) }];
let sortBy = 0, lastFrame = null;

// Whether the rank's end is why the job has ended.
const failed = (rank) => outcome !== null && outcome.failed !== null && outcome.failed.role === rank.role && outcome.failed.rank === rank.rank;
const lost = (rank) => outcome !== null && outcome.lost_node !== null && outcome.lost_node === rank.node_rank;

function mark(rank) {
  if (failed(rank)) return " (failed)";
  if (lost(rank)) return " (node lost)";
  return rank.slowest && outcome === null ? " (slowest)" : "";
}

function sorted(ranks) {
  const by = kColumns[sortBy];
  const value = (rank) => sortBy === 0 ? -orderOf(rank) : by.get(rank);
  return [...ranks].sort((a, b) => {
    const ends = (rank) => failed(rank) || lost(rank) ? 1 : 0;
    if (ends(a) !== ends(b)) return ends(b) - ends(a);
    const one = value(a), other = value(b);
    return known(one) && known(other) ? other - one : (known(other) ? 1 : 0) - (known(one) ? 1 : 0);
  });
}
const orderOf = (rank) => (rank.role === "server" ? 1e9 : 0) + rank.rank;

// Servers that say what they do have a table of their own.
const inRanks = (frame) => frame.ranks.filter((r) => !r.serving);

function showRanks(frame) {
  const all = inRanks(frame);
  const shown = kColumns.filter((c, i) => i === 0 || all.some(c.any || ((r) => known(c.get(r)))));
  const by = kColumns[sortBy], ranks = sorted(all);
  const head = element("tr");
  for (const column of shown) {
    const cell = element("th"), button = element("button", column.title);
    button.dataset.sort = String(kColumns.indexOf(column));
    if (column === by) cell.setAttribute("aria-sort", sortBy === 0 ? "ascending" : "descending");
    cell.append(button);
    head.append(cell);
  }
  const rows = ranks.slice(0, kMostRows).map((rank) => {
    const row = element("tr", null, failed(rank) || lost(rank) ? "failed" : rank.slowest && !outcome ? "slow" : "");
    for (const column of shown) {
      const text = column.text(column.get(rank), rank);
      const cell = element("td", column === kColumns[0] ? null : text);
      cell.dataset.title = column.title;  // on a narrow screen
      if (column === kColumns[0]) {
        const button = element("button", text + mark(rank));
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
  if (button.dataset.log) {
    logChosen = true;
    return openLog(button.dataset.log, true);
  }
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
  showServers(frame);
  listLogs(frame);
}
