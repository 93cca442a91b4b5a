#include "node/job_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_name.h"
#include "base/log.h"
#include "base/text.h"
#include "node/process_tree.h"

namespace fleet {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kEnding[] = ".json";

// Containers may share /tmp: each counts its processes on its own.
std::string pid_namespace() {
  char name[64];
  const ssize_t n = ::readlink("/proc/self/ns/pid", name, sizeof name);
  return n > 0 ? std::string(name, static_cast<size_t>(n)) : std::string();
}

// A folder in /tmp may have been made by somebody else, to read or to forge our records.
void check_folder(const std::string& folder) {
  struct stat found;
  if (::lstat(folder.c_str(), &found) != 0) throw_errno("cannot look at the folder", folder);
  if (!S_ISDIR(found.st_mode) || found.st_uid != ::geteuid() || (found.st_mode & 022) != 0) {
    throw Error(ErrorCode::kIo, "it is no folder that only this user may write", folder,
                "remove it, or name another with FLEET_RUNTIME_DIR");
  }
}

Json to_json(const JobRecord& record) {
  Json all;
  all["job_id"] = record.job_id;
  all["pid"] = record.pid;
  all["node_rank"] = record.node_rank;
  all["nnodes"] = record.nnodes;
  all["world_size"] = record.world_size;
  all["epoch"] = record.epoch;
  all["address"] = record.address;
  all["rendezvous"] = record.rendezvous;
  all["log_dir"] = record.log_dir;
  all["folder"] = record.folder;
  all["started"] = record.started;
  all["command"] = record.command;
  all["ranks"] = Json::array();
  for (const JobRecord::Rank& rank : record.ranks) {
    all["ranks"].push_back({{"local_rank", rank.local_rank},
                            {"rank", rank.rank},
                            {"server", rank.server},
                            {"pid", rank.pid},
                            {"log", rank.log_path}});
  }
  return all;
}

JobRecord from_json(const Json& all) {
  JobRecord record;
  all.at("job_id").get_to(record.job_id);
  all.at("pid").get_to(record.pid);
  all.at("node_rank").get_to(record.node_rank);
  all.at("nnodes").get_to(record.nnodes);
  all.at("world_size").get_to(record.world_size);
  all.at("epoch").get_to(record.epoch);
  all.at("address").get_to(record.address);
  all.at("rendezvous").get_to(record.rendezvous);
  all.at("log_dir").get_to(record.log_dir);
  all.at("folder").get_to(record.folder);
  all.at("started").get_to(record.started);
  all.at("command").get_to(record.command);
  for (const Json& rank : all.at("ranks")) {
    record.ranks.push_back({rank.at("local_rank").get<int>(), rank.at("rank").get<int>(),
                            rank.at("server").get<bool>(), rank.at("pid").get<pid_t>(),
                            rank.at("log").get<std::string>()});
  }
  return record;
}

Json parse(const std::string& text) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kUsage, std::string("it is no record of a job: ") + error.what());
  }
}

// Nothing where it is another pid namespace's; a record whose process is gone is removed.
void add_job(const std::string& path, const std::string& our_namespace,
             std::vector<JobRecord>* found) {
  const std::string text = read_file(path);
  const Json all = parse(text);
  if (all.value("pid_namespace", our_namespace) != our_namespace) return;
  JobRecord record = read_job_record(text);
  if (process_birth(record.pid) != all.value("birth", "")) {
    ::unlink(path.c_str());
    return;
  }
  found->push_back(std::move(record));
}

}  // namespace

std::string job_record_folder() {
  if (const auto own = get_env("FLEET_RUNTIME_DIR")) return *own;
  if (const auto session = get_env("XDG_RUNTIME_DIR")) {
    if (::access(session->c_str(), W_OK | X_OK) == 0) return *session + "/fleetrun";
  }
  return "/tmp/fleetrun-" + std::to_string(::geteuid());
}

std::string make_job_record_folder() {
  const std::string folder = job_record_folder();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), error);
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_errno("cannot create the folder", folder);
  }
  check_folder(folder);
  return folder;
}

std::string job_record_name(const std::string& job_id, pid_t launcher) {
  return file_word(job_id.substr(0, 100)) + "." + std::to_string(launcher) + kEnding;
}

std::string job_record_json(const JobRecord& record) {
  return to_json(record).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

JobRecord read_job_record(const std::string& json) {
  try {
    return from_json(parse(json));
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kUsage, std::string("it is no record of a job: ") + error.what());
  }
}

std::vector<JobRecord> find_jobs() {
  const std::string folder = job_record_folder(), our_namespace = pid_namespace();
  std::vector<JobRecord> found;
  if (::access(folder.c_str(), F_OK) != 0) return found;
  check_folder(folder);
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string path = entry.path().string();
    if (!path.ends_with(kEnding)) continue;
    try {
      add_job(path, our_namespace, &found);
    } catch (const Error& ended) {  // just now, or no record
      spdlog::debug("{}", ended.what());
    }
  }
  std::sort(found.begin(), found.end(),
            [](const JobRecord& a, const JobRecord& b) { return a.started < b.started; });
  return found;
}

JobRecordFile::JobRecordFile(JobRecord record, bool stays)
    : record_(std::move(record)), stays_(stays) {
  record_.pid = ::getpid();
  record_.started = unix_seconds();
  std::error_code error;
  record_.folder = std::filesystem::current_path(error).string();
  record_.log_dir = std::filesystem::absolute(record_.log_dir, error).lexically_normal().string();
  try {
    path_ = make_job_record_folder() + "/" + job_record_name(record_.job_id, record_.pid);
    write();
  } catch (const Error& failure) {
    path_.clear();
    spdlog::debug("no record of this job: {}", failure.what());
  }
}

JobRecordFile::~JobRecordFile() {
  if (!path_.empty() && !stays_) ::unlink(path_.c_str());
}

void JobRecordFile::on_assignment(const Assignment& assignment,
                                  const std::vector<std::string>& log_paths) {
  const NodePlacement& node = assignment.node();
  record_.node_rank = assignment.node_rank;
  record_.nnodes = assignment.nnodes();
  record_.world_size = assignment.world_size();
  record_.epoch = assignment.epoch();
  record_.address = node.address;
  record_.rendezvous = assignment.store_address;
  record_.ranks.clear();
  for (int local = 0; local < node.nproc(); ++local) {
    const auto place = static_cast<size_t>(local);
    std::error_code error;
    const std::string log =
        place < log_paths.size()
            ? std::filesystem::absolute(log_paths[place], error).lexically_normal().string()
            : std::string();
    record_.ranks.push_back({local, node.rank_of(local), node.is_server(local), -1, log});
  }
  missing_ = record_.ranks.size();
}

void JobRecordFile::on_rank_started(int local_rank, pid_t pid) {
  for (JobRecord::Rank& rank : record_.ranks) {
    if (rank.local_rank != local_rank || rank.pid >= 0 || missing_ == 0) continue;
    rank.pid = pid;
    if (--missing_ == 0) write();
  }
}

// Not synced to the disk: nobody needs it after a crash of the machine, and a start is to be quick.
void JobRecordFile::write() {
  if (path_.empty()) return;
  Json all = to_json(record_);
  all["birth"] = process_birth(record_.pid);
  all["pid_namespace"] = pid_namespace();
  const std::string text = all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string aside = path_ + ".part";
  const UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const bool written =
      fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  if (!written || ::rename(aside.c_str(), path_.c_str()) != 0) {
    spdlog::debug("{}: the record of this job cannot be written", path_);
    ::unlink(aside.c_str());
  }
}

}  // namespace fleet
