#include "node/job_record.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_name.h"
#include "base/json.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "node/control_socket.h"
#include "node/memory_record.h"
#include "node/process_handle.h"
#include "node/process_tree.h"
#include "node/runtime_folder.h"
#include "transport/local_socket.h"

namespace fleet {
namespace {

constexpr char kEnding[] = ".job";

Json position_json(const LogPosition& mark) { return Json::array({mark.file(), mark.at()}); }

Json rank_json(const JobRecord::Rank& rank) {
  Json all = {{"local_rank", rank.local_rank()},
              {"rank", rank.rank()},
              {"server", rank.server()},
              {"pid", rank.pid()},
              {"log", rank.log_path()},
              {"shown", rank.shown()},
              {"log_begin", position_json(rank.log_begin())},
              {"log_end", position_json(rank.log_end())}};
  if (rank.error_log().empty()) return all;
  all["error_log"] = rank.error_log();
  all["error_begin"] = position_json(rank.error_begin());
  all["error_end"] = position_json(rank.error_end());
  return all;
}

Json progress_json(const wire::JobProgress& progress) {
  return {
      {"step", progress.step()},
      {"target", progress.target() > 0 ? Json(progress.target()) : Json(nullptr)},
      {"loss", progress.has_loss() ? Json(progress.loss()) : Json(nullptr)},
      {"seconds_left", progress.has_seconds_left() ? Json(progress.seconds_left()) : Json(nullptr)},
      {"time", progress.unix_time()}};
}

// `folder`: absolute, or empty if it was removed.
std::string absolute(const std::string& path, const std::string& folder) {
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

// Marks where the rank's output begins; a restarted rank continues the same log.
void begin_logs(const JobRecord& before, bool overwrite, JobRecord::Rank* rank) {
  for (const JobRecord::Rank& old : before.ranks()) {
    if (old.log_path() != rank->log_path()) continue;
    *rank->mutable_log_begin() = old.log_begin();
    *rank->mutable_error_begin() = old.error_begin();
    return;
  }
  *rank->mutable_log_begin() = end_of_log(rank->log_path());
  if (!rank->error_log().empty()) *rank->mutable_error_begin() = end_of_log(rank->error_log());
  if (!overwrite) return;
  rank->mutable_log_begin()->set_at(0);
  rank->mutable_error_begin()->set_at(0);
}

// Whether the process that wrote the record still runs, as far as its pid namespace can be seen.
enum class Launcher { kRuns, kGone, kElsewhere };

Launcher launcher_of(const JobRecord& record) {
  if (record.pid_namespace() != pid_namespace()) return Launcher::kElsewhere;
  const bool runs = process_start_ticks(record.pid()) == record.start_ticks() &&
                    ProcessHandle(record.pid(), record.start_ticks()).runs();
  return runs ? Launcher::kRuns : Launcher::kGone;
}

// A part's record stays for the starter of this fleetrun, unless that is gone as well.
constexpr double kPartsStay = 60;  // seconds

void retire_record(const std::string& path, const JobRecord& record) {
  struct stat file = {};
  if (record.part()) {
    const bool old = ::lstat(path.c_str(), &file) == 0 &&
                     unix_seconds() - static_cast<double>(file.st_mtime) > kPartsStay;
    if (!old) return;
  } else if (!has_ended_record(record)) {
    save_ended_job(end_of_killed(record));
  }
  ::unlink(path.c_str());
  remove_dead_socket(control_socket_of(record.pid()));
}

}  // namespace

std::string job_record_name(const std::string& job_id, pid_t launcher) {
  return file_name_component(job_id) + "." + std::to_string(launcher) + kEnding;
}

std::string run_name(const JobRecord& record) {
  return file_name_component(record.job_id()) + "." + std::to_string(record.pid()) + "." +
         std::to_string(std::llround(record.started() * 1000));
}

Json job_record_json(const JobRecord& record) {
  Json all;
  all["job_id"] = record.job_id();
  all["pid"] = record.pid();
  all["birth"] = record.start_ticks();
  all["run"] = record.run();
  all["part"] = record.part();
  all["node_rank"] = record.node_rank();
  all["nnodes"] = record.nnodes();
  all["world_size"] = record.world_size();
  all["generation"] = record.generation();
  all["address"] = record.address();
  all["rendezvous"] = record.rendezvous();
  all["log_dir"] = record.log_dir();
  all["folder"] = record.folder();
  all["started"] = record.started();
  all["command"] = texts(record.command());
  all["ranks"] = Json::array();
  for (const JobRecord::Rank& rank : record.ranks()) all["ranks"].push_back(rank_json(rank));
  all["progress"] = record.has_progress() ? progress_json(record.progress()) : Json(nullptr);
  return all;
}

JobRecord read_job_record(const std::string& path) {
  JobRecord record;
  if (!record.ParseFromString(read_file(path)) || record.job_id().empty()) {
    throw Error(ErrorCode::kUsage, "the file is not a record of a job", path);
  }
  return record;
}

std::optional<JobRecord> read_running_job(const std::string& path) {
  try {
    JobRecord record = read_job_record(path);
    const Launcher launcher = launcher_of(record);
    if (launcher == Launcher::kRuns) return record;
    if (launcher == Launcher::kGone) retire_record(path, record);
  } catch (const Error& error) {  // just ended, or the file is not a record
    spdlog::debug("{}", error.what());
  }
  return std::nullopt;
}

std::vector<JobRecord> find_jobs() {
  std::vector<JobRecord> found;
  for (const std::string& path : files_in_runtime_folders(kEnding)) {
    if (auto record = read_running_job(path)) found.push_back(std::move(*record));
  }
  for (const std::string& bytes : find_memory_records()) {
    JobRecord record;
    if (!record.ParseFromString(bytes) || launcher_of(record) != Launcher::kRuns) continue;
    const bool known =
        std::ranges::any_of(found, [&](const JobRecord& one) { return one.pid() == record.pid(); });
    if (!known) found.push_back(std::move(record));
  }
  std::sort(found.begin(), found.end(),
            [](const JobRecord& a, const JobRecord& b) { return a.started() < b.started(); });
  return found;
}

JobRecordFile::JobRecordFile(JobRecord record) : record_(std::move(record)) {
  record_.set_pid(::getpid());
  record_.set_start_ticks(process_start_ticks(record_.pid()));
  record_.set_started(unix_seconds());
  record_.set_pid_namespace(pid_namespace());
  std::error_code error;
  record_.set_folder(std::filesystem::current_path(error).string());
  record_.set_log_dir(absolute(record_.log_dir(), record_.folder()));
  try {
    create();
  } catch (const Error& failure) {
    spdlog::warn("{}; other commands find this job by its processes only", failure.what());
  }
}

void JobRecordFile::create() {
  path_.clear();
  try {
    path_ = make_runtime_folder() + "/" + job_record_name(record_.job_id(), record_.pid());
    write();
  } catch (const Error&) {
    path_.clear();
    write();  // the copy in memory needs no folder
    throw;
  }
}

void JobRecordFile::keep() {
  if (record_.part() || (!path_.empty() && ::access(path_.c_str(), F_OK) == 0)) return;
  try {
    create();
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
}

JobRecordFile::~JobRecordFile() {
  if (!path_.empty() && !record_.part()) ::unlink(path_.c_str());
}

void JobRecordFile::on_assignment(const Assignment& assignment, const wire::SpawnRanks& spawn) {
  const wire::Node& node = assignment.node();
  record_.set_run(assignment.world->run());
  // Another node of this job may run on this host: commands tell it from another job by its run.
  // All else is written once every rank has a process.
  if (record_.generation() == 0 && assignment.nnodes() > 1) try_to_write();
  record_.set_node_rank(assignment.node_rank);
  record_.set_nnodes(assignment.nnodes());
  record_.set_world_size(assignment.world_size());
  record_.set_generation(assignment.generation());
  record_.set_address(node.address());
  // This node's own path to a rendezvous that it hosts is useless to other nodes.
  if (!is_local_address(assignment.store_address)) record_.set_rendezvous(assignment.store_address);
  const JobRecord before = record_;
  record_.clear_ranks();
  for (const wire::RankCommand& command : spawn.ranks()) {
    JobRecord::Rank* rank = record_.add_ranks();
    rank->set_local_rank(command.local_rank());
    rank->set_rank(command.rank());
    rank->set_server(is_server(node, command.local_rank()));
    rank->set_pid(-1);
    rank->set_log_path(absolute(command.log_path(), record_.folder()));
    if (!command.error_log_path().empty())
      rank->set_error_log(absolute(command.error_log_path(), record_.folder()));
    rank->set_shown(command.shown_streams() != 0);
    begin_logs(before, spawn.logs().overwrite(), rank);
  }
  missing_ = record_.ranks_size();
}

void JobRecordFile::on_hosting(const std::string& rendezvous) {
  record_.set_rendezvous(rendezvous);
}

void JobRecordFile::on_progress(const wire::JobProgress& progress, bool write_now) {
  *record_.mutable_progress() = progress;
  if (write_now) try_to_write();
}

void JobRecordFile::on_verdict(wire::JobVerdict verdict) {
  *record_.mutable_verdict() = std::move(verdict);
  try_to_write();
}

void JobRecordFile::try_to_write(bool clean) {
  try {
    write();
    if (clean && !record_.part()) clean_runtime_folder();
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
}

void JobRecordFile::on_rank_started(int local_rank, pid_t pid) {
  for (JobRecord::Rank& rank : *record_.mutable_ranks()) {
    if (rank.local_rank() != local_rank) continue;
    const bool first = rank.pid() < 0;
    rank.set_pid(pid);
    if (first && missing_ > 0 && --missing_ == 0) try_to_write(true);
    if (!first && missing_ == 0) try_to_write();  // another process in its place
  }
}

void JobRecordFile::end(JobInfo how, bool logs_respond) {
  memory_.reset();
  if (path_.empty() || record_.part()) return;
  for (JobRecord::Rank& rank : *record_.mutable_ranks()) {
    if (!logs_respond) break;
    *rank.mutable_log_end() = end_of_log(rank.log_path());
    if (!rank.error_log().empty()) *rank.mutable_error_end() = end_of_log(rank.error_log());
  }
  how.set_ended(unix_seconds());
  *how.mutable_record() = record_;
  try {
    save_ended_job(std::move(how));
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
  ::unlink(path_.c_str());
  path_.clear();
}

// Not synced to the disk: a record is useless after a crash of the machine, and a start must be
// quick.
void JobRecordFile::write() {
  const std::string bytes = record_.SerializeAsString();
  if (!record_.part()) memory_ = make_memory_record(bytes);
  if (!path_.empty()) replace_owned_file(path_, bytes, {.mode = 0600, .sync = false});
}

}  // namespace fleet
