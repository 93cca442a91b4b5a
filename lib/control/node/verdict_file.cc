#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

#include "base/bounded_call.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "diagnosis/bottleneck.h"
#include "diagnosis/collective_waits.h"
#include "diagnosis/rank_endings.h"
#include "node/job_record.h"
#include "node/runtime_folder.h"
#include "node/supervision.h"

namespace fleet {
namespace {

// In the format of torchrun's own reply file.
Json error_json(const RecordedError& error) {
  if (error.message().empty()) return nullptr;
  Json extra;
  extra["py_callstack"] = error.callstack().empty() ? Json(nullptr) : Json(error.callstack());
  return {{"message", error.message()},
          {"extraInfo", extra},
          {"timestamp", error.unix_time() > 0 ? Json(error.unix_time()) : Json(nullptr)}};
}

Json verdict_rank_json(const RankExit& exit) {
  Json rank;
  rank["role"] = exit.server() ? "server" : "trainer";
  rank["rank"] = exit.rank();
  rank["local_rank"] = exit.local_rank();
  rank["node_rank"] = exit.node_rank();
  rank["code"] = exit.signal() == 0 && failed(exit) ? Json(exit.code()) : Json(nullptr);
  rank["signal"] = exit.signal() == 0 ? Json(nullptr) : Json(signal_name(exit.signal()));
  rank["out_of_memory"] = exit.oom();
  rank["ran_for"] = static_cast<double>(exit.ran_for_ms()) / 1000;
  rank["cause"] = exit.cause();
  rank["note"] = exit.note();
  rank["error"] = error_json(exit.error());
  rank["log"] = exit.log_path();
  rank["last_lines"] = Json::array();
  if (exit.tail().empty()) return rank;
  const std::string tail = resolve_output(exit.tail());
  for (const std::string_view line : lines_of(tail)) rank["last_lines"].push_back(line);
  return rank;
}

Json generation_json(const GenerationResult& end) {
  Json generation;
  generation["generation"] = end.generation();
  generation["verdict"] = name_of(end.kind());
  generation["message"] = end.message();
  generation["nnodes"] = end.nnodes();
  generation["world_size"] = end.world_size();
  generation["ran_for"] = static_cast<double>(end.ran_for_ms()) / 1000;
  generation["step"] = end.has_step() ? Json(end.step()) : Json(nullptr);
  return generation;
}

Json samples_json(bool known, int64_t samples) { return known ? Json(samples) : Json(nullptr); }

Json replacement_json(const wire::Replacement& one, double verdict_time) {
  const RankExit& exit = one.exit();
  const double time = verdict_time - static_cast<double>(one.before_ms()) / 1000;
  Json all;
  all["rank"] = exit.rank();
  all["local_rank"] = exit.local_rank();
  all["node_rank"] = exit.node_rank();
  all["generation"] = one.generation();
  all["replacement"] = one.ordinal();
  all["time"] = std::round(time * 1000) / 1000;
  all["code"] = exit.signal() == 0 ? Json(exit.code()) : Json(nullptr);
  all["signal"] = exit.signal() == 0 ? Json(nullptr) : Json(signal_name(exit.signal()));
  all["out_of_memory"] = exit.oom();
  all["cause"] = exit.cause();
  all["note"] = exit.note();
  all["message"] = one.message();
  all["log"] = exit.log_path();
  all["repeated_samples"] = samples_json(one.has_repeated_samples(), one.repeated_samples());
  all["lost_samples"] = samples_json(one.has_lost_samples(), one.lost_samples());
  return all;
}

}  // namespace

wire::JobVerdict job_verdict(Verdict verdict, const World* world, double unix_time, bool brief) {
  wire::JobVerdict outcome;
  outcome.set_text(verdict_text(verdict, world, {.abort_line = !brief}));
  if (brief && verdict.exit().shown()) {
    outcome.set_unseen_text(
        verdict_text(verdict, world, {.abort_line = false, .last_lines = false}));
  }
  *outcome.mutable_verdict() = std::move(verdict);
  outcome.set_unix_time(unix_time);
  if (!world) return outcome;
  outcome.set_nnodes(world->nodes_size());
  outcome.set_world_size(world->world_size());
  return outcome;
}

Json verdict_json(const wire::JobVerdict& outcome, const JobRecord& record) {
  const Verdict& verdict = outcome.verdict();
  const bool ran = outcome.nnodes() > 0;
  Json all;
  all["verdict"] = name_of(verdict.kind());
  all["exit_code"] = exit_code_for(verdict);
  all["message"] = verdict.message();
  all["text"] = outcome.text();
  all["job_id"] = record.job_id();
  all["run"] = record.run();
  all["generation"] = verdict.generation();
  all["started"] = std::round(record.started() * 1000) / 1000;
  all["time"] = std::round(outcome.unix_time() * 1000) / 1000;
  all["nnodes"] = ran ? Json(outcome.nnodes()) : Json(nullptr);
  all["world_size"] = ran ? Json(outcome.world_size()) : Json(nullptr);
  if (verdict.has_node_rank() || !verdict.node().empty()) {
    all["node"] = {{"rank", verdict.has_node_rank() ? verdict.node_rank() : -1},
                   {"address", verdict.node()},
                   {"hostname", verdict.hostname()}};
  }
  if (verdict.has_exit()) all["rank"] = verdict_rank_json(verdict.exit());
  if (verdict.kind() == Verdict::HANG) {
    all["waits"] = waits_json(verdict.waits());
    all["endings"] = endings_json(verdict.endings());
    all["notes"] = texts(verdict.notes());
  }
  if (verdict.kind() == Verdict::STOPPED) all["signal"] = signal_name(verdict.signal());
  all["bottleneck"] = nullptr;
  if (verdict.has_bottleneck()) all["bottleneck"] = bottleneck_json(verdict.bottleneck());
  all["restarts"] = verdict.restarts();
  all["generations"] = Json::array();
  for (const GenerationResult& end : verdict.history())
    all["generations"].push_back(generation_json(end));
  all["replacements"] = Json::array();
  for (const wire::Replacement& one : verdict.replacements())
    all["replacements"].push_back(replacement_json(one, outcome.unix_time()));
  return all;
}

std::string verdict_file_text(const JobRecord& record) {
  const Json all = verdict_json(record.verdict(), record);
  return all.dump_lossy(2) + "\n";
}

namespace {

// In the order in which they are tried if the log folder is not writable.
std::vector<std::string> fallback_paths(const JobRecord& record) {
  const std::string name = run_name(record) + kVerdictSuffix;
  std::vector<std::string> paths;
  try {
    paths.push_back(make_runtime_folder() + "/" + name);
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
  paths.push_back("/tmp/fleetrun." + name);
  if (const auto home = get_env("HOME")) paths.push_back(*home + "/fleetrun." + name);
  return paths;
}

// An old verdict must not be mistaken for this run's. On a full disk, this also makes room.
bool replace_old(const std::string& path, const std::string& json, bool sync) {
  if (::unlink(path.c_str()) != 0) return false;
  try {
    replace_owned_file(path, json, {.sync = sync});
    return true;
  } catch (const Error&) {
    return false;
  }
}

// A slow disk answers sooner, a file server that is gone never.
constexpr std::chrono::seconds kWriteTimeout{15};

// Returns "", or why it could not be written.
std::string write_to_log_folder(const std::string& path, const std::string& json, bool sync,
                                bool* folder_hangs) {
  const auto write = [path, json, sync] {
    try {
      replace_owned_file(path, json, {.sync = sync});
    } catch (const Error&) {
      if (!replace_old(path, json, sync)) throw;
    }
  };
  try {
    if (!*folder_hangs && ends_within(kWriteTimeout, write)) return {};
  } catch (const Error& error) {
    return error.failure();
  }
  *folder_hangs = true;
  return "the file system does not respond";
}

}  // namespace

std::string write_verdict_file(const JobRecord& record, bool sync, bool* folder_hangs) {
  const std::string path = record.log_dir() + "/verdict.json";
  const std::string json = verdict_file_text(record);
  const std::string why = write_to_log_folder(path, json, sync, folder_hangs);
  if (why.empty()) return path;
  for (const std::string& fallback : fallback_paths(record)) {
    try {
      replace_owned_file(fallback, json, {.mode = 0600, .sync = sync});
      spdlog::warn("{}: {}; the verdict is in {}", path, why, fallback);
      return fallback;
    } catch (const Error& error) {
      spdlog::debug("{}", error.what());
    }
  }
  spdlog::error("{}: {}; cannot write the verdict anywhere else", path, why);
  return {};
}

}  // namespace fleet
