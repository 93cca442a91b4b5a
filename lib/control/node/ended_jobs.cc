#include <dirent.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "base/text.h"
#include "node/control_socket.h"
#include "node/job_record.h"
#include "node/runtime_folder.h"
#include "transport/local_socket.h"
#include "transport/validate.h"

namespace fleet {
namespace {

constexpr char kEndedSuffix[] = ".ended";
// A younger file may belong to a process that is about to use it.
constexpr double kUnfinished = 60;  // seconds

std::string path_of(const std::string& folder, const JobRecord& record) {
  return folder + "/" + run_name(record) + kEndedSuffix;
}

struct KeptFile {
  std::string path;
  double changed = 0;  // seconds since 1970
  int64_t size = 0;
};

std::optional<KeptFile> stat_file(const std::string& path) {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) return std::nullopt;
  return KeptFile{path, static_cast<double>(status.st_mtime), status.st_size};
}

// The process whose pid is the last-but-one part of the name: "night.123.job"; -1: none.
pid_t pid_in(std::string_view name) {
  name = name.substr(0, name.rfind('.'));
  long long pid = -1;
  return parse_int(name.substr(name.rfind('.') + 1), &pid) ? static_cast<pid_t>(pid) : -1;
}

bool is_gone(pid_t pid) { return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH; }

class RuntimeFolderCleaner {
 public:
  RuntimeFolderCleaner(std::string folder, const EndedJobLimits& limits)
      : folder_(std::move(folder)), limits_(limits), now_(unix_seconds()) {}

  void run() {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(folder_.c_str()), ::closedir);
    if (!folder) return;
    while (const dirent* entry = ::readdir(folder.get())) inspect(entry->d_name);
    for (const std::string& name : sockets_) remove_socket(name);
    remove_dead_local_sockets(folder_);
    remove_excess();
  }

 private:
  void inspect(const std::string& name) {
    const std::string path = folder_ + "/" + name;
    if (name.ends_with(kEndedSuffix) || name.ends_with(kVerdictSuffix)) {
      if (auto kept = stat_file(path)) ended_.push_back(std::move(*kept));
    } else if (name.ends_with(".json")) {  // a record from fleetrun 0.1
      if (is_gone(pid_in(name))) ::unlink(path.c_str());
    } else if (name.ends_with(".job")) {
      if (is_gone(pid_in(name))) read_running_job(path);
      if (::access(path.c_str(), F_OK) == 0) pids_.push_back(pid_in(name));
    } else if (name.ends_with(".sock")) {
      if (is_gone(pid_in(name))) sockets_.push_back(name);
    } else if (name.find(".part.") != std::string::npos) {
      if (is_old(path)) ::unlink(path.c_str());
    }
  }

  // A fleetrun in another container has its record before its socket.
  void remove_socket(const std::string& name) const {
    const bool has_record = std::find(pids_.begin(), pids_.end(), pid_in(name)) != pids_.end();
    if (!has_record) remove_dead_socket(folder_ + "/" + name);
  }

  bool is_old(const std::string& path) const {
    const auto file = stat_file(path);
    return file && now_ - file->changed > kUnfinished;
  }

  void remove_excess() {
    std::sort(ended_.begin(), ended_.end(),
              [](const KeptFile& a, const KeptFile& b) { return a.changed > b.changed; });
    size_t jobs = 0;
    int64_t bytes = 0;
    for (const KeptFile& file : ended_) {
      jobs += file.path.ends_with(kEndedSuffix) ? 1 : 0;
      bytes += file.size;
      const bool keep =
          jobs <= limits_.jobs && bytes <= limits_.bytes && now_ - file.changed <= limits_.seconds;
      if (!keep) ::unlink(file.path.c_str());
    }
  }

  const std::string folder_;
  const EndedJobLimits limits_;
  const double now_;
  std::vector<KeptFile> ended_;
  std::vector<pid_t> pids_;  // running jobs with a record, here or in another container
  std::vector<std::string> sockets_;
};

}  // namespace

void save_ended_job(JobInfo job) {
  job.set_phase(JobInfo::ENDED);
  replace_owned_file(path_of(make_runtime_folder(), job.record()), job.SerializeAsString(),
                     {.mode = 0600, .sync = false});
}

bool has_ended_record(const JobRecord& record) {
  return std::ranges::any_of(runtime_folders(), [&](const std::string& folder) {
    return ::access(path_of(folder, record).c_str(), F_OK) == 0;
  });
}

JobInfo end_of_killed(const JobRecord& record) {
  JobInfo job;
  *job.mutable_record() = record;
  job.set_ended(unix_seconds());
  job.set_killed(!record.has_verdict());
  job.set_code(job.killed() ? 128 + SIGKILL : exit_code_for(record.verdict().verdict()));
  if (!job.killed()) job.set_verdict_path(record.log_dir() + "/verdict.json");
  return job;
}

std::vector<JobInfo> find_ended_jobs() {
  std::vector<JobInfo> found;
  for (const std::string& path : files_in_runtime_folders(kEndedSuffix)) {
    try {
      JobInfo job;
      if (!job.ParseFromString(read_file(path))) continue;  // written by another version
      validate(job);
      found.push_back(std::move(job));
    } catch (const Error& error) {  // just removed, or of another version
      spdlog::debug("{}", error.what());
    }
  }
  std::sort(found.begin(), found.end(), [](const JobInfo& a, const JobInfo& b) {
    return a.record().started() < b.record().started();
  });
  return found;
}

void clean_runtime_folder(const EndedJobLimits& limits) {
  for (const std::string& folder : usable_runtime_folders()) {
    RuntimeFolderCleaner(folder, limits).run();
  }
}

}  // namespace fleet
