// Parameter servers in frames and JSON of fleetrun top.
#include <algorithm>

#include "base/number_text.h"
#include "base/one_line.h"
#include "viewing/live_columns.h"

namespace fleet {
namespace {

using wire::LiveRank;
using wire::LiveServer;
using wire::LiveServerUse;
using wire::ServerReport;

template <auto kHas, auto kGet>
std::optional<double> served(const LiveRank& rank) {
  if (!rank.has_serving() || !(rank.serving().*kHas)()) return std::nullopt;
  return (rank.serving().*kGet)();
}

std::optional<double> server_state(const LiveRank& rank) {
  return rank.has_serving() ? std::optional<double>(rank.serving().state()) : std::nullopt;
}
std::string state_label(const LiveRow& row) {
  return row.values->has_serving() ? server_state_name(row.values->serving().state()) : "";
}
std::optional<double> blocks_of(const LiveRank& rank) {
  return rank.has_serving() ? std::optional<double>(rank.serving().blocks()) : std::nullopt;
}
std::optional<double> rows_of(const LiveRank& rank) {
  if (!rank.has_serving() || rank.serving().tables().empty()) return std::nullopt;
  return static_cast<double>(rank.serving().rows());
}
std::optional<double> held_by(const LiveRank& rank) {
  if (!rank.has_serving()) return std::nullopt;
  return static_cast<double>(rank.serving().block_bytes() + rank.serving().table_bytes());
}
std::optional<double> served_step(const LiveRank& rank) {
  if (!rank.has_serving() || rank.serving().step() < 0) return std::nullopt;
  return static_cast<double>(rank.serving().step());
}
std::optional<double> ahead_of(const LiveRank& rank) {
  if (!rank.has_serving() || !rank.serving().apart()) return std::nullopt;
  return static_cast<double>(rank.serving().ahead());
}
std::optional<double> row_rate(const LiveRank& rank) {
  std::optional<double> all;
  for (const wire::LiveTable& table : rank.serving().tables()) {
    if (table.has_pulled()) all = all.value_or(0) + table.pulled() + table.pushed();
  }
  return all;
}

std::string whole_text(double value) { return format_printf("%.0f", value); }
std::string rate_text(double rate) { return format_printf("%.*f", rate < 100 ? 1 : 0, rate); }
std::string percent_text(double share) { return format_printf("%.0f", 100 * share); }
// 950, 12.3k, 1.24M
std::string count_text(double count) {
  if (count < 10'000) return whole_text(count);
  if (count < 1e6) return format_printf("%.1fk", count / 1e3);
  return count < 1e9 ? format_printf("%.2fM", count / 1e6) : format_printf("%.2fG", count / 1e9);
}
std::string megabytes_text(double bytes) {
  return format_printf("%.*f", bytes < 1e8 ? 1 : 0, bytes / 1e6);
}
std::string held_text(double bytes) {
  const double mib = bytes / (1 << 20);
  if (mib < 1000) return format_printf("%.*fM", mib < 10 ? 1 : 0, mib);
  return format_printf("%.1fG", mib / 1024);
}

template <typename Value>
Json known_value(bool has, Value value) {
  return has ? Json(value) : Json(nullptr);
}

Json live_table_json(const wire::LiveTable& table) {
  return {{"name", one_line(table.name(), 100)},
          {"rows", table.rows()},
          {"bytes", table.bytes()},
          {"pulled_rows_per_second", known_value(table.has_pulled(), table.pulled())},
          {"pushed_rows_per_second", known_value(table.has_pushed(), table.pushed())}};
}

}  // namespace

const char* server_state_name(ServerReport::State state) {
  switch (state) {
    case ServerReport::SERVING:
      return "serves";
    case ServerReport::SAVING:
      return "saves";
    case ServerReport::ENDING:
      return "ends";
    default:
      return "starts";
  }
}

std::span<const LiveColumn> server_columns() {
  static const LiveColumn all[] = {
      {"SERVER", "rank", 'r', LiveColumn::kAlways,
       [](const LiveRank& rank) { return std::optional<double>(rank.rank()); }, whole_text,
       live_rank_label},
      {"NODE", "node", 'n', 30,
       [](const LiveRank& rank) { return std::optional<double>(rank.node_rank()); }, whole_text},
      {"STATE", "state", 0, 86, server_state, whole_text, state_label},
      {"STEP", "step", 's', 60, served_step, whole_text},
      {"BLOCKS", "blocks", 0, 70, blocks_of, whole_text},
      {"ROWS", "rows", 0, 85, rows_of, count_text},
      {"HELD", "held", 0, 84, held_by, held_text},
      {"PUSH/s", "pushes", 0, 88, served<&LiveServer::has_pushes, &LiveServer::pushes>, rate_text},
      {"ROWS/s", "row_rate", 0, 78, row_rate, count_text},
      {"IN MB/s", "in", 0, 83, served<&LiveServer::has_received, &LiveServer::received>,
       megabytes_text},
      {"OUT MB/s", "out", 0, 82, served<&LiveServer::has_sent, &LiveServer::sent>, megabytes_text},
      {"BUSY%", "busy", 0, 90, served<&LiveServer::has_busy, &LiveServer::busy>, percent_text},
      {"ANSWER ms", "ms", 'm', 89, served<&LiveServer::has_answer_ms, &LiveServer::answer_ms>,
       rate_text},
      {"LATE%", "late", 0, 71, served<&LiveServer::has_waits, &LiveServer::waits>, percent_text},
      {"AHEAD", "ahead", 0, 72, ahead_of, whole_text},
      {"CPU%", "cpu", 'c', 80,
       [](const LiveRank& rank) {
         return rank.has_cpu() ? std::optional(rank.cpu()) : std::nullopt;
       },
       percent_text},
      {"RSS", "memory", 'M', 79,
       [](const LiveRank& rank) {
         return rank.has_memory() ? std::optional(static_cast<double>(rank.memory()))
                                  : std::nullopt;
       },
       held_text},
  };
  return all;
}

std::vector<const LiveRank*> sorted_servers(const LiveReport& report, const std::string& key) {
  std::vector<const LiveRank*> servers;
  for (const LiveRank& rank : report.ranks()) {
    if (rank.server()) servers.push_back(&rank);
  }
  sort_ranks(server_columns(), key, &servers);
  return servers;
}

Json server_json(const LiveServer& server) {
  Json all = {{"state", server_state_name(server.state())},
              {"address", one_line(server.address(), 100)},
              {"blocks", server.blocks()},
              {"block_bytes", server.block_bytes()},
              {"rows", server.rows()},
              {"table_bytes", server.table_bytes()},
              {"pushes_per_second", known_value(server.has_pushes(), server.pushes())},
              {"pulls_per_second", known_value(server.has_pulls(), server.pulls())},
              {"received_per_second", known_value(server.has_received(), server.received())},
              {"sent_per_second", known_value(server.has_sent(), server.sent())},
              {"busy", known_value(server.has_busy(), server.busy())},
              {"answer_ms", known_value(server.has_answer_ms(), server.answer_ms())},
              {"late_share", known_value(server.has_waits(), server.waits())},
              {"step", known_value(server.step() >= 0, server.step())},
              {"ahead", server.ahead()},
              {"queued", server.queued()}};
  all["tables"] = Json::array();
  for (const wire::LiveTable& table : server.tables())
    all["tables"].push_back(live_table_json(table));
  return all;
}

Json server_use_json(const LiveServerUse& use) {
  return {{"push_share", known_value(use.has_push_share(), use.push_share())},
          {"values_share", known_value(use.has_values_share(), use.values_share())},
          {"rows_share", known_value(use.has_rows_share(), use.rows_share())},
          {"sent_per_second", known_value(use.has_sent(), use.sent())},
          {"received_per_second", known_value(use.has_received(), use.received())},
          {"queue", known_value(use.has_queued(), use.queued())},
          {"queue_capacity", known_value(use.capacity() > 0, use.capacity())},
          {"staleness", known_value(use.has_stale(), use.stale())},
          {"most_staleness", known_value(use.has_stale(), use.most_stale())}};
}

}  // namespace fleet
