#include "train/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/file_status.h"
#include "base/log.h"
#include "base/number_text.h"
#include "base/owned_file.h"
#include "base/running_clock.h"
#include "base/text.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;

constexpr char kRoot[] = "output";
constexpr char kPrefix[] = "run-";
constexpr char kMark[] = "/checkpoints.run";
constexpr char kLock[] = "/.lock";

Error unusable(const std::string& failure, const std::string& folder) {
  return Error(ErrorCode::kUsage, failure, "the output folder " + folder,
               "set train.output to a writable folder");
}

void make(const std::string& folder) {
  try {
    make_directories(folder);
  } catch (const Error& error) {
    throw unusable(error.failure(), folder);
  }
}

void check_name(const std::string& name) {
  if (!name.empty() && name.find('/') == name.npos && name != "." && name != "..") return;
  throw Error(ErrorCode::kUsage, "'" + name + "' is not the name of a folder", "train.name",
              "choose one without '/'");
}

int number_of(const std::string& folder) {
  long long number = 0;
  const std::string name = fs::path(folder).filename();
  if (!name.starts_with(kPrefix)) return 0;
  return parse_int(name.substr(std::strlen(kPrefix)), &number) && number > 0 &&
                 number < 1'000'000'000
             ? static_cast<int>(number)
             : 0;
}

// The newest first.
std::vector<std::string> runs_in(const std::string& root) {
  std::vector<std::string> runs;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (number_of(entry->path()) > 0) runs.push_back(entry->path());
  }
  std::sort(runs.begin(), runs.end(),
            [](const std::string& a, const std::string& b) { return number_of(a) > number_of(b); });
  return runs;
}

// Two jobs that start at the same time get two folders.
std::string make_run(const std::string& root) {
  const std::vector<std::string> runs = runs_in(root);
  for (int number = runs.empty() ? 1 : number_of(runs.front()) + 1;; ++number) {
    const std::string path = root + "/" + format_printf("%s%03d", kPrefix, number);
    if (::mkdir(path.c_str(), 0777) == 0) return path;
    if (errno != EEXIST) throw unusable(std::strerror(errno), path);
  }
}

void link_latest(const std::string& root, const std::string& run) {
  const std::string aside = root + "/.latest." + std::to_string(::getpid());
  const std::string latest = root + "/latest";
  ::unlink(aside.c_str());
  if (::symlink(fs::path(run).filename().c_str(), aside.c_str()) == 0 &&
      ::rename(aside.c_str(), latest.c_str()) == 0) {
    return;
  }
  spdlog::warn("{} could not be pointed to this run: {}", latest, std::strerror(errno));
  ::unlink(aside.c_str());
}

}  // namespace

std::string ContinuedFolder::note() const {
  if (saved && unsaved.empty()) return "";
  if (saved) return without_checkpoint(unsaved) + ": continuing " + path;
  const std::string none =
      unsaved.empty() ? "there is no checkpoint yet" : without_checkpoint(unsaved);
  return none + ": training starts from the beginning";
}

// The newest run that has a complete checkpoint. If none has, the newest with a damaged one, whose
// start is refused, or the newest.
static ContinuedFolder run_to_resume(const std::string& name) {
  const std::vector<std::string> runs = runs_of(name);
  ContinuedFolder found;
  std::string damaged;
  for (const std::string& run : runs) {
    const std::string checkpoints = run + "/checkpoints";
    const bool alone = runs.size() == 1;  // nothing to choose: do not read the whole checkpoint
    if (alone ? latest_checkpoint(checkpoints) : newest_complete_checkpoint(checkpoints)) {
      found.path = run;
      found.saved = true;
      return found;
    }
    if (damaged.empty() && latest_checkpoint(checkpoints)) damaged = run;
    found.unsaved.push_back(run);
  }
  if (!damaged.empty()) return {.path = damaged, .saved = true};
  if (!found.unsaved.empty()) found.path = found.unsaved.front();
  return found;
}

ContinuedFolder continued_folder(const RunFolderOptions& options) {
  const auto known = [](const std::string& folder) {
    return ContinuedFolder{.path = folder,
                           .saved = latest_checkpoint(folder + "/checkpoints").has_value()};
  };
  if (!options.output.empty()) {
    ContinuedFolder given = known(options.output);
    const bool of_this_run = options.restarted && is_of_run(given.path, options.run);
    const bool has_run = path_exists(given.path + "/metrics.jsonl");
    if (!given.saved && has_run && !of_this_run) given.unsaved.push_back(given.path);
    return given;
  }
  check_name(options.name);
  if (options.restarted) {  // another job may have started a newer run since
    for (const std::string& run : runs_of(options.name)) {
      if (is_of_run(run, options.run)) return known(run);
    }
  }
  return options.resumes ? run_to_resume(options.name) : ContinuedFolder();
}

std::string folder_to_continue(const RunFolderOptions& options) {
  return continued_folder(options).path;
}

RunFolder::RunFolder(const RunFolderOptions& options)
    : continued_(continued_folder(options)), path_(continued_.path) {
  if (options.output.empty()) {
    choose(options);
  } else {
    make(path_);
  }
  lock(options.run);
}

RunFolder::~RunFolder() {
  if (!made_) return;
  ::unlink((path_ + kLock).c_str());
  ::rmdir(path_.c_str());  // stays if it is not empty
}

void RunFolder::choose(const RunFolderOptions& options) {
  root_ = std::string(kRoot) + "/" + options.name;
  make(root_);
  if (!path_.empty()) return;
  path_ = make_run(root_);
  made_ = true;
}

void RunFolder::begin() {
  made_ = false;
  if (!root_.empty()) link_latest(root_, path_);
}

// The lock ends with the process. If another rank of this run is exiting, waits for it.
void RunFolder::lock(const std::string& run) {
  const std::string path = path_ + kLock;
  try {
    lock_ = open_owned_file(path, O_RDWR | O_CREAT);
  } catch (const Error& error) {
    throw unusable(error.failure(), path_);
  }
  RunningDeadline patience{std::chrono::seconds(10)};
  while (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) {  // a file system without locks
      spdlog::info("{}: {}; a second job in this folder would go unnoticed", path,
                   std::strerror(errno));
      return;
    }
    const std::string holder(trim(read_file(path)));  // "RUN OWNER"
    const size_t space = holder.find(' ');
    const bool own = !run.empty() && holder.substr(0, space) == run;
    if (!own || patience.passed()) {
      const std::string who = space == holder.npos ? "" : " (" + holder.substr(space + 1) + ")";
      throw Error(ErrorCode::kUsage, "another job is using it" + who, "the output folder " + path_,
                  "wait until it has ended, or set train.output to another folder");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  const std::string holder =
      (run.empty() ? "-" : run) + " process " + std::to_string(::getpid()) + " on " + host + "\n";
  if (::ftruncate(lock_.get(), 0) != 0) throw_errno("cannot be written", path);
  write_all(lock_.get(), holder, path);
}

std::vector<std::string> runs_of(const std::string& name) {
  check_name(name);
  return runs_in(std::string(kRoot) + "/" + name);
}

std::string without_checkpoint(const std::vector<std::string>& runs) {
  constexpr size_t kShown = 3;
  return join_first(runs, kShown) + (runs.size() == 1 ? " has" : " have") +
         " no complete checkpoint";
}

std::string tensorboard_folder(const std::string& run) {
  const fs::path path = (fs::path(run) / "").lexically_normal().parent_path();
  std::error_code error;
  const bool linked = fs::is_symlink(path.parent_path() / "latest", error);
  if (number_of(path) == 0 || !linked) return run + "/tensorboard";
  return path.parent_path() / "tensorboard" / path.filename();
}

bool is_of_run(const std::string& folder, const std::string& run) {
  const std::string mark = folder + kMark;
  return !run.empty() && path_exists(mark) && read_file(mark) == run;
}

void mark_as_of_run(const std::string& folder, const std::string& run) {
  if (!run.empty()) write_file_atomically(folder + kMark, run);
}

std::optional<std::string> set_aside(const std::string& path) {
  if (!path_exists(path)) return std::nullopt;
  for (int number = 1;; ++number) {
    const std::string aside = path + "." + std::to_string(number);
    if (path_exists(aside)) continue;
    if (::rename(path.c_str(), aside.c_str()) != 0) throw_errno("cannot rename", path);
    return aside;
  }
}

}  // namespace fleet
