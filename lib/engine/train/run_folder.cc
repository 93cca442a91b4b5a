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
#include "base/text.h"

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

// The run with the highest number; "" if none.
std::string newest_run(const std::string& root) {
  std::string newest;
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path();
    if (number_of(path) > (newest.empty() ? 0 : number_of(newest))) newest = path;
  }
  return newest;
}

// Two jobs that start at the same time get two folders.
std::string make_run(const std::string& root) {
  const std::string newest = newest_run(root);
  for (int number = newest.empty() ? 1 : number_of(newest) + 1;; ++number) {
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

std::string folder_to_continue(const RunFolderOptions& options) {
  if (!options.output.empty()) return options.output;
  if (options.restarted) {  // another job may have started a newer run since
    for (const std::string& run : runs_of(options.name)) {
      if (is_of_run(run, options.run)) return run;
    }
  }
  check_name(options.name);
  return options.resumes ? newest_run(std::string(kRoot) + "/" + options.name) : "";
}

RunFolder::RunFolder(const RunFolderOptions& options) : path_(options.output) {
  if (path_.empty()) {
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
  check_name(options.name);
  root_ = std::string(kRoot) + "/" + options.name;
  make(root_);
  path_ = folder_to_continue(options);
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
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
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
    if (!own || std::chrono::steady_clock::now() > until) {
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
  std::vector<std::string> runs;
  std::error_code error;
  const std::string root = std::string(kRoot) + "/" + name;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (number_of(entry->path()) > 0) runs.push_back(entry->path());
  }
  std::sort(runs.begin(), runs.end(),
            [](const std::string& a, const std::string& b) { return number_of(a) > number_of(b); });
  return runs;
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
