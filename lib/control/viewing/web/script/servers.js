// --- parameter servers, and their tables ---

const kServerColumns = [
  { title: "server", get: (r) => r.rank, text: (v) => String(v) },
  { title: "node", get: (r) => r.node_rank, text: String },
  { title: "address", get: () => null, text: (_, r) => r.serving.address, any: () => true },
  { title: "state", get: () => null, text: (_, r) => r.serving.state, any: () => true },
  { title: "step", get: (r) => r.serving.step, text: String },
  { title: "blocks", get: (r) => r.serving.blocks, text: String },
  { title: "block memory", get: (r) => r.serving.block_bytes, text: bytes },
  { title: "pushes/s", get: (r) => r.serving.pushes_per_second, text: rounded },
  { title: "pulls/s", get: (r) => r.serving.pulls_per_second, text: rounded },
  { title: "in MB/s", get: (r) => r.serving.received_per_second, text: (v) => known(v) ? rounded(v / 1e6) : "-" },
  { title: "out MB/s", get: (r) => r.serving.sent_per_second, text: (v) => known(v) ? rounded(v / 1e6) : "-" },
  { title: "busy %", get: (r) => r.serving.busy, text: percent },
  { title: "answer ms", get: (r) => r.serving.answer_ms, text: rounded },
  { title: "late %", get: (r) => r.serving.late_share, text: percent },
  { title: "ahead", get: (r) => r.serving.ahead || null, text: (v) => known(v) ? String(v) : "-" },
  { title: "waiting messages", get: (r) => r.serving.queued || null, text: (v) => known(v) ? String(v) : "-" },
  { title: "CPU %", get: (r) => r.cpu, text: percent },
  { title: "memory", get: (r) => r.memory, text: bytes }];
const kTableColumns = [
  { title: "table", get: (t) => t.name, text: String },
  { title: "server", get: (t) => t.server, text: String },
  { title: "rows", get: (t) => t.rows, text: String },
  { title: "memory", get: (t) => t.bytes, text: bytes },
  { title: "rows pulled/s", get: (t) => t.pulled_rows_per_second, text: rounded },
  { title: "rows pushed/s", get: (t) => t.pushed_rows_per_second, text: rounded }];

// first: the text of a row's first cell becomes a button that shows this log; null: plain text.
function fillTable(table, columns, rows, first, kind) {
  const shown = columns.filter((c, i) => i === 0 || rows.some(c.any || ((r) => known(c.get(r)) || typeof c.get(r) === "string")));
  const head = element("tr");
  for (const column of shown) head.append(element("th", column.title));
  table.replaceChildren(head, ...rows.slice(0, kMostRows).map((one) => {
    const row = element("tr", null, kind(one));
    for (const column of shown) {
      const text = column.text(column.get(one), one);
      const button = column === columns[0] && first ? element("button", text + mark(one)) : null;
      const cell = element("td", button ? null : text);
      cell.dataset.title = column.title;  // on a narrow screen
      if (button) {
        button.dataset.log = first(one);
        button.title = "show its log";
        cell.append(button);
      }
      row.append(cell);
    }
    return row;
  }));
}

function showServers(frame) {
  const servers = frame.ranks.filter((r) => r.serving).sort((a, b) => a.rank - b.rank);
  const tables = servers.flatMap((r) => r.serving.tables.map((t) => ({ ...t, server: r.rank })));
  tables.sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : a.server - b.server);
  at("serving").hidden = servers.length === 0;
  at("tables").hidden = tables.length === 0;
  if (servers.length === 0) return;
  fillTable(at("servers"), kServerColumns, servers, (r) => r.role + " " + r.rank,
    (r) => failed(r) || lost(r) ? "failed" : r.slowest && !outcome ? "slow" : "");
  fillTable(at("tables"), kTableColumns, tables, null, () => "");
}

at("servers").addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  logChosen = true;
  openLog(button.dataset.log, true);
});
