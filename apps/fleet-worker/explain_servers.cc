#include "explain_servers.h"

#include <cstdio>

#include "api/world.h"
#include "base/counted.h"
#include "base/error.h"
#include "base/json.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "ps/explain.h"
#include "ps/job_tables.h"
#include "strategy/server_mode.h"
#include "train/job_check.h"

namespace fleet {
namespace {

using ps::HeldBlock;
using ps::HeldByServer;
using ps::HeldTable;
using ps::ServersExplained;

void refuse_predictions(const WorkerArguments& arguments) {
  const bool link = !arguments.link_rate.empty();
  if (arguments.card.empty() && !link && arguments.measure != "again") return;
  throw Error(ErrorCode::kUsage, "the times of a job with parameter servers are not predicted",
              link                     ? "--link_rate"
              : arguments.card.empty() ? "--measure"
                                       : "--for",
              "leave it out, or explain collective training: leave out --servers");
}

std::string traffic_of(const HeldTable& table, bool geo) {
  if (geo) {
    return "  table " + table.name + ": for each id that it trained since the last exchange it " +
           "sends its row, and receives the rows of its ids that any trainer sent";
  }
  const auto bytes = [&](size_t one) {
    return mebibytes(one * static_cast<size_t>(table.most_ids));
  };
  return "  table " + table.name + ": for each distinct id of its batch it sends " +
         std::to_string(table.pushed_bytes) + " bytes, and receives " +
         std::to_string(table.pulled_bytes) + "; for all " + counted(table.most_ids, "id") +
         ", if distinct, " + bytes(table.pushed_bytes) + " and " + bytes(table.pulled_bytes);
}

std::vector<std::string> text_of(const ServersExplained& explained, const ServerSettings& settings,
                                 int ranks, const std::string& not_checked) {
  const bool geo = settings.mode == ServerMode::kGeo;
  std::vector<std::string> lines = {counted(std::ssize(explained.servers), "parameter server") +
                                    ", " + counted(ranks, "trainer") + ": mode " + settings.text()};
  for (const HeldByServer& server : explained.servers) {
    lines.push_back(server.line);
    for (const HeldBlock& block : server.blocks) lines.push_back("  " + block.text());
    if (!server.kept.empty()) lines.push_back("  keeps " + join(server.kept, ", "));
    for (const HeldTable& table : explained.tables) {
      const ps::ShardRange& shards =
          table.shards[static_cast<size_t>(&server - explained.servers.data())];
      lines.push_back("  table " + table.name + ": shards " + std::to_string(shards.first) +
                      " to " + std::to_string(shards.end - 1) + " of " +
                      std::to_string(ps::kVirtualShards));
    }
  }
  for (const HeldTable& table : explained.tables) lines.push_back(table.text());
  lines.push_back(
      "each trainer sends " + mebibytes(explained.pushed_bytes) +
      (geo ? " in an exchange, every " + counted(settings.geo_steps, "update") : " in an update") +
      ", and receives " + mebibytes(explained.pulled_bytes));
  for (const HeldTable& table : explained.tables) lines.push_back(traffic_of(table, geo));
  if (!not_checked.empty()) lines.push_back(not_checked);
  lines.push_back(explained.tables.empty()
                      ? "the memory of trainers and times are not predicted; without --servers "
                        "they are, for collective training"
                      : "the number of rows, the memory of trainers and times are not predicted");
  return lines;
}

Json json_of(const ServersExplained& explained) {
  Json servers = Json::array();
  for (const HeldByServer& server : explained.servers) {
    Json blocks = Json::array();
    for (const HeldBlock& block : server.blocks) {
      blocks.push_back(
          {{"parameter", block.parameter}, {"begin", block.begin}, {"end", block.end}});
    }
    servers.push_back({{"bytes", server.bytes}, {"blocks", blocks}, {"keeps", server.kept}});
  }
  return servers;
}

Json tables_json(const ServersExplained& explained) {
  Json tables = Json::array();
  for (const HeldTable& table : explained.tables) {
    Json shards = Json::array();
    for (const ps::ShardRange& range : table.shards) {
      shards.push_back({{"first", range.first}, {"end", range.end}});
    }
    tables.push_back({{"name", table.name},
                      {"dim", table.dim},
                      {"rule", table.rule},
                      {"storage", table.storage},
                      {"row_bytes", table.row_bytes},
                      {"cached_rows", table.cached_rows},
                      {"most_ids", table.most_ids},
                      {"pushed_bytes_per_id", table.pushed_bytes},
                      {"pulled_bytes_per_id", table.pulled_bytes},
                      {"shards", shards}});
  }
  return tables;
}

}  // namespace

void explain_job_with_servers(const WorkerArguments& arguments, const ConfigTree& tree, int ranks,
                              int servers) {
  refuse_predictions(arguments);
  // The lines about each pass belong to a start.
  if (spdlog::get_level() == spdlog::level::info) spdlog::set_level(spdlog::level::warn);
  const Job job = make_job(tree);
  const ServerSettings settings = server_settings(strategy_from(job.strategy));
  ServersExplained explained;
  const std::string not_checked =
      check_training(job, {.world = ranks, .servers = servers, .backend = job_backend(job)},
                     [&](const Program& program) {
                       explained = ps::servers_explained(
                           program, servers, ps::tables_of(job, program), settings.mode);
                     });
  if (explained.servers.empty()) {
    throw Error(ErrorCode::kUnsupported, "the parameters depend on data: " + not_checked,
                "--explain", "see the logs of the servers, serverlog.N");
  }
  const std::vector<std::string> lines = text_of(explained, settings, ranks, not_checked);
  if (arguments.format != "json") {
    std::puts(escape_controls(join(lines, "\n")).c_str());
    return;
  }
  Json text = Json::array();
  for (const std::string& line : lines) text.push_back(line);
  const Json all = {{"model", job.model_name},
                    {"ranks", ranks},
                    {"mode", name_of(settings.mode)},
                    {"servers", json_of(explained)},
                    {"tables", tables_json(explained)},
                    {"pushed_bytes", explained.pushed_bytes},
                    {"pulled_bytes", explained.pulled_bytes},
                    {"text", text}};
  std::puts(all.dump_lossy().c_str());
}

}  // namespace fleet
