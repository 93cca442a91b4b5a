#include "daemon/job_info.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include "base/text_table.h"
#include "rendezvous/types.h"

namespace fleet {
namespace {

using Json = nlohmann::ordered_json;

constexpr JobPhase kPhases[] = {JobPhase::kPrepared, JobPhase::kForming, JobPhase::kRunning,
                                JobPhase::kStopping, JobPhase::kEnded};

Json to_json(const JobInfo& job) {
  Json all = Json::parse(job_record_json(job.record));
  all["phase"] = name_of(job.phase);
  all["nodes"] = job.nodes;
  all["place"] = job.place;
  all["gpus"] = job.gpus;
  all["detached"] = job.detached;
  all["restarts"] = job.restarts;
  all["exit_code"] = job.phase == JobPhase::kEnded ? Json(job.code) : Json(nullptr);
  all["ended"] = job.phase == JobPhase::kEnded ? Json(job.ended) : Json(nullptr);
  all["verdict"] = Json::parse(job.verdict, nullptr, false);
  if (all["verdict"].is_discarded()) all["verdict"] = nullptr;
  return all;
}

JobPhase phase_named(const std::string& name) {
  for (const JobPhase phase : kPhases) {
    if (name == name_of(phase)) return phase;
  }
  throw Error(ErrorCode::kUsage, "'" + name + "' is no phase of a job");
}

std::string time_of(const JobInfo& job, double now) {
  if (job.record.started <= 0) return "-";
  const double until = job.phase == JobPhase::kEnded ? job.ended : now;
  return format_duration(std::max(0.0, std::floor(until - job.record.started)));
}

std::string state_of(const JobInfo& job) {
  if (job.phase != JobPhase::kEnded) return name_of(job.phase);
  return job.code == 0 ? "succeeded" : "failed (" + std::to_string(job.code) + ")";
}

// How far it is with the job: a spare node waits while others run.
int stage(JobPhase phase) {
  const JobPhase seen = phase == JobPhase::kForming ? JobPhase::kRunning : phase;
  return static_cast<int>(seen) * 2 + (phase == JobPhase::kForming ? 1 : 0);
}

// Who knows better how it ended: who was there last; then who has failed.
std::pair<int, bool> knowledge(const JobInfo& job) {
  const auto verdict = read_verdict(job.verdict);
  return {verdict ? verdict->epoch : -1, job.code != 0};
}

// The least far of its nodes; of those that have ended, the one that knows best.
const JobInfo& speaker(const std::vector<const JobInfo*>& parts) {
  return **std::min_element(parts.begin(), parts.end(), [](const JobInfo* a, const JobInfo* b) {
    if (a->phase != b->phase) return stage(a->phase) < stage(b->phase);
    return a->phase == JobPhase::kEnded && knowledge(*a) > knowledge(*b);
  });
}

std::string command_of(const JobInfo& job) {
  const std::string text = join(job.record.command, " ");
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

}  // namespace

const char* name_of(JobPhase phase) {
  switch (phase) {
    case JobPhase::kPrepared:
      return "prepared";
    case JobPhase::kForming:
      return "waiting for nodes";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kStopping:
      return "stopping";
    case JobPhase::kEnded:
      return "ended";
  }
  return "unknown";
}

std::string job_info_json(const JobInfo& job) {
  return to_json(job).dump(-1, ' ', false, Json::error_handler_t::replace);
}

JobInfo read_job_info(const std::string& json) {
  JobInfo job;
  job.record = read_job_record(json);
  try {
    const Json all = Json::parse(json);
    job.phase = phase_named(all.at("phase").get<std::string>());
    all.at("nodes").get_to(job.nodes);
    all.at("place").get_to(job.place);
    all.at("gpus").get_to(job.gpus);
    all.at("detached").get_to(job.detached);
    all.at("restarts").get_to(job.restarts);
    if (job.phase == JobPhase::kEnded) {
      all.at("exit_code").get_to(job.code);
      all.at("ended").get_to(job.ended);
    }
    if (!all.at("verdict").is_null()) job.verdict = all["verdict"].dump();
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kUsage,
                std::string("what was told of a job makes no sense: ") + error.what());
  }
  return job;
}

std::optional<VerdictNote> read_verdict(const std::string& json) {
  try {
    const Json all = Json::parse(json);
    const auto kind = all.at("verdict").get<std::string>();
    VerdictNote note;
    note.node_lost = kind == name_of(VerdictKind::kNodeLost);
    note.epoch = all.value("epoch", 0);
    if (kind != name_of(VerdictKind::kStopped)) note.text = all.value("text", "");
    return note;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::string jobs_table(const std::vector<JobInfo>& jobs, double now) {
  std::map<std::string, std::vector<const JobInfo*>> by_id;
  std::vector<std::string> order;
  for (const JobInfo& job : jobs) {
    if (by_id[job.record.job_id].empty()) order.push_back(job.record.job_id);
    by_id[job.record.job_id].push_back(&job);
  }
  std::vector<std::vector<std::string>> rows = {
      {"JOB", "STATE", "NODES", "RANKS", "TIME", "COMMAND"}};
  for (const std::string& id : order) {
    const JobInfo& job = speaker(by_id[id]);
    const int ranks = job.record.world_size;
    rows.push_back({id, state_of(job), std::to_string(job.record.nnodes),
                    ranks > 0 ? std::to_string(ranks) : "-", time_of(job, now), command_of(job)});
  }
  return aligned(rows);
}

std::string job_status(const std::vector<JobInfo>& parts, double now) {
  std::vector<const JobInfo*> all;
  for (const JobInfo& part : parts) all.push_back(&part);
  const JobInfo& job = speaker(all);
  const JobRecord& record = job.record;
  std::vector<std::vector<std::string>> facts = {
      {"job", record.job_id},
      {"state", state_of(job) + (job.detached ? ", detached" : "")},
      {"time", time_of(job, now)},
      {"command", join(record.command, " ")},
      {"folder", record.folder},
      {"nodes", std::to_string(record.nnodes)},
      {"ranks", record.world_size > 0 ? std::to_string(record.world_size) : "-"}};
  if (record.epoch > 1) facts.push_back({"epoch", std::to_string(record.epoch)});
  std::string text = aligned(facts);
  for (const JobInfo& part : parts) {
    const JobRecord& here = part.record;
    text += "node " + (here.node_rank < 0 ? "?" : std::to_string(here.node_rank)) + " (" +
            here.address + "): " + state_of(part) +
            (part.gpus.empty() ? "" : ", GPUs " + join(part.gpus, ",")) + ", logs in " +
            here.log_dir + "\n";
    if (part.phase == JobPhase::kEnded) continue;
    for (const JobRecord::Rank& rank : here.ranks) {
      text += "  " + std::string(rank.server ? "server " : "rank ") + std::to_string(rank.rank) +
              "  pid " + std::to_string(rank.pid) + "  " + rank.log_path + "\n";
    }
  }
  const auto verdict = read_verdict(job.verdict);
  return verdict && !verdict->text.empty() ? text + verdict->text + "\n" : text;
}

std::string jobs_json(const std::vector<JobInfo>& jobs) {
  Json all = Json::array();
  for (const JobInfo& job : jobs) all.push_back(to_json(job));
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fleet
