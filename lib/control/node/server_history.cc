#include "node/server_history.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "node/history_file.h"
#include "node/rank_steps.h"
#include "observe/event_file.h"

namespace fleet {
namespace {

constexpr int64_t kBetweenServerLines = 5'000'000'000;  // ns

const char* server_state_key(ServerState state) {
  switch (state) {
    case ServerState::kServing:
      return "serving";
    case ServerState::kSaving:
      return "saving";
    case ServerState::kEnding:
      return "ending";
    default:
      return "starting";
  }
}

void add_served_tables(const ServerProgress& progress, EventLine* line) {
  const auto count = std::clamp<int64_t>(progress.tables, 0, ServerProgress::kMaxTables);
  if (count == 0) return;
  std::vector<std::string> names;
  std::vector<int64_t> rows, bytes, pulled, pushed;
  for (int64_t t = 0; t < count; ++t) {
    const TableProgress& table = progress.table[static_cast<size_t>(t)];
    names.emplace_back(table.name.view());
    rows.push_back(table.rows);
    bytes.push_back(table.bytes);
    pulled.push_back(table.pulled);
    pushed.push_back(table.pushed);
  }
  line->add("tables", std::move(names))
      .add("table_rows", std::move(rows))
      .add("table_bytes", std::move(bytes))
      .add("pulled_rows", std::move(pulled))
      .add("pushed_rows", std::move(pushed));
}

EventLine server_line(int server, const ServerProgress& progress, int64_t begun_ns) {
  EventLine line("server");
  line.add("server", server)
      .add("address", std::string(progress.address.view()))
      .add("state", server_state_key(progress.state))
      .add("seconds", 1e-9 * static_cast<double>(progress.at_ns - begun_ns))
      .add("step", progress.steps)
      .add("blocks", progress.blocks)
      .add("block_bytes", progress.bytes)
      .add("pushes", progress.pushes)
      .add("pulls", progress.pulls)
      .add("received_bytes", progress.received)
      .add("sent_bytes", progress.sent)
      .add("busy_seconds", 1e-9 * static_cast<double>(progress.busy))
      .add("late_seconds", 1e-9 * static_cast<double>(progress.waited))
      .add("queue", progress.queued);
  if (progress.apart != 0) line.add("ahead", progress.ahead);
  add_served_tables(progress, &line);
  return line;
}

}  // namespace

void ServerHistory::begin(const std::string& metrics_path, bool overwrite) {
  overwrite_ = overwrite;
  servers_.clear();
  path_.clear();
  if (metrics_path.empty()) return;
  path_ = (std::filesystem::path(metrics_path).parent_path() / "servers.jsonl").string();
}

void ServerHistory::add(int server, const ServerProgress& progress, Moment now) {
  if (path_.empty()) return;
  const auto [entry, is_new] = servers_.try_emplace(server);
  Server& of = entry->second;
  if (is_new) of.begun_ns = of.written_ns = progress.at_ns;
  of.last = progress;
  if (progress.at_ns - of.written_ns >= kBetweenServerLines) write(server, of, now);
}

void ServerHistory::on_server_ended(int server, Moment now) {
  const auto found = servers_.find(server);
  if (found == servers_.end()) return;
  if (found->second.last.at_ns > found->second.begun_ns) write(server, found->second, now);
  servers_.erase(found);
}

void ServerHistory::write(int server, Server& of, Moment now) {
  of.written_ns = of.last.at_ns;
  try {
    if (!std::exchange(opened_, true)) {
      if (overwrite_) {
        ::unlink(path_.c_str());
      } else {
        set_history_aside(path_);
      }
    }
    append_history(path_, server_line(server, of.last, of.begun_ns).json(now.unix) + "\n");
  } catch (const Error& error) {
    if (!std::exchange(failed_, true)) spdlog::warn("{}", error.what());
  }
}

}  // namespace fleet
