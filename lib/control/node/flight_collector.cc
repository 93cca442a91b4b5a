#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/number_text.h"
#include "base/owned_file.h"
#include "base/running_clock.h"
#include "base/thread.h"
#include "node/flight_dump.h"
#include "node/process_tree.h"
#include "rendezvous/types.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kSearchInterval{50};
constexpr std::chrono::milliseconds kPollInterval{20};
// Part of the limit: to read the dumps that come at the last moment.
constexpr std::chrono::milliseconds kReadTime{300};
constexpr char kCopy[] = "/flight_recorder_";
constexpr char kNoAnswer[] = "its dump is not read yet: does the disk of its folder answer?";

// Makes the reader of a pipe write a dump. "", or why it will not.
std::string trigger(const std::string& path) {
  UniqueFd folder;
  try {
    folder = open_owned_folder(path.substr(0, path.rfind('/') + 1));
  } catch (const Error& error) {
    return error.what();
  }
  const std::string name = path.substr(path.rfind('/') + 1);
  // Never waits for a reader, and never writes to anything but a pipe.
  const UniqueFd pipe(
      ::openat(folder.get(), name.c_str(), O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC));
  if (!pipe) {
    if (errno == ENXIO) return "nothing reads its pipe";
    if (errno == ENOENT) return "it has no pipe; PyTorch makes one with its first NCCL group";
    return std::string("its pipe cannot be opened: ") + std::strerror(errno);
  }
  struct stat status;
  if (::fstat(pipe.get(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return "the name of its pipe stands for something else";
  }
  return ::write(pipe.get(), "1", 1) == 1 ? "" : "it does not read its pipe";
}

// Those of each rank, itself first; only itself if they cannot be listed: no reason to end the job.
std::vector<std::vector<pid_t>> processes_of(const std::vector<FlightCollector::Target>& targets) {
  std::vector<pid_t> ranks;
  for (const FlightCollector::Target& target : targets) ranks.push_back(target.pid);
  if (ranks.empty()) return {};
  try {
    return process_trees(ranks);  // at once: it reads all of /proc
  } catch (const Error& error) {
    spdlog::debug("{}", error.what());
  }
  std::vector<std::vector<pid_t>> alone;
  for (const pid_t rank : ranks) alone.push_back({rank});
  return alone;
}

std::string read_dump(const std::string& path) {
  const UniqueFd file = open_owned_file(path, O_RDONLY);
  struct stat status;
  if (::fstat(file.get(), &status) != 0) throw_errno("cannot read it", path);
  if (status.st_size > kMaxFlightDump) {
    throw Error(ErrorCode::kUsage, "has more than " + std::to_string(kMaxFlightDump >> 20) + " MiB",
                path, "lower TORCH_FR_BUFFER_SIZE");
  }
  std::string bytes(static_cast<size_t>(status.st_size), '\0');
  size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t n =
        ::pread(file.get(), bytes.data() + got, bytes.size() - got, static_cast<off_t>(got));
    if (n <= 0) break;  // cut in the meantime
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

// A look for the dumps of PyTorch's flight recorder of this node's ranks.
//
// PyTorch makes a pipe for each rank (TORCH_NCCL_DEBUG_INFO_PIPE_FILE) and looks at it every second
// or so. Whatever is written to it makes the rank write a dump and continue. Protocol: DumpPipe in
// torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, DebugInfoWriter in FlightRecorder.cpp.
//
// One thread calls run(); any thread may call the others at the same time.
class FlightSearch {
 public:
  using Target = FlightCollector::Target;

  // Whole dumps are copied to `folder`, as flight_recorder_RANK. Waits for dumps for `limit`.
  FlightSearch(std::vector<Target> targets, std::string folder, std::chrono::milliseconds limit)
      : targets_(std::move(targets)), folder_(std::move(folder)), limit_(limit) {}
  // Blocks; longer than `limit` if a file system does not answer.
  void run() {
    try {
      const std::vector<std::vector<pid_t>> processes = processes_of(targets_);
      for (size_t i = 0; i < targets_.size(); ++i) ask(targets_[i], processes[i]);
      wait_for_dumps();
    } catch (const std::exception& error) {
      spdlog::warn("no dump of PyTorch's flight recorder: {}", error.what());
    }
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  void cancel() {
    const MutexLock lock(mutex_);
    cancelled_ = true;
    changed_.notify_all();
  }
  bool ended() const {
    const MutexLock lock(mutex_);
    return ended_;
  }
  void wait_until_ended(std::chrono::steady_clock::time_point until) const {
    const MutexLock lock(mutex_);
    while (!ended_ && std::chrono::steady_clock::now() < until) changed_.wait_until(mutex_, until);
  }
  // The calls of the PyTorch ranks among the targets, or why they are not known (yet).
  std::vector<RankCollectives> results() const {
    const MutexLock lock(mutex_);
    return results_;
  }

 private:
  // Distinguishes the contents of a file.
  struct FileState {
    int64_t inode = 0, size = -1, changed_ns = 0;
    bool operator==(const FileState&) const = default;
  };
  struct Dump {
    std::string path;
    FileState before, last;
  };
  // A rank that was asked for a dump.
  struct Asked {
    size_t place = 0;  // in results_
    RankCollectives result;
    int world_size = 0;
    std::vector<Dump> dumps;  // where it may appear
    std::string failure;      // error of the last attempt to read one
    bool done = false;
  };

  void ask(const Target& target, const std::vector<pid_t>& processes) {
    const FlightSettings settings = flight_settings_of(processes);
    if (!settings.has_pipe && !uses_torch(processes)) return;
    Asked asked;
    RankCollectives& result = asked.result;
    result.set_rank(target.rank);
    result.set_local_rank(target.local_rank);
    result.set_state(process_state(target.pid));
    result.set_recorder_off(!settings.has_pipe);
    if (result.state() == 'T' || result.state() == 't') {
      if (settings.has_pipe) result.set_missing("it is stopped");
    } else if (settings.has_pipe) {
      result.set_missing(kNoAnswer);  // for results(), until something better is known
    }
    asked.place = add_result(result);
    if (result.missing() != kNoAnswer) return;
    asked.world_size = settings.world_size;
    for (const std::string& prefix : settings.dumps) {
      const std::string path = prefix + std::to_string(target.rank);
      const FileState state = state_of(path);
      asked.dumps.push_back({path, state, state});
    }
    const std::string why = trigger(settings.pipe + std::to_string(target.rank) + ".pipe");
    if (why.empty()) return asked_.push_back(std::move(asked));
    result.set_missing(why);
    set_result(asked.place, result);
  }
  void wait_for_dumps() {
    const auto deadline = running_now() + limit_;
    for (bool last_time = false; !last_time;) {
      last_time = running_now() >= deadline;
      for (Asked& asked : asked_) {
        if (!asked.done) asked.done = inspect(&asked, last_time);
      }
      if (std::ranges::all_of(asked_, &Asked::done)) return;
      const MutexLock lock(mutex_);
      if (cancelled_) return;
      if (!last_time) {
        changed_.wait_until(mutex_, std::chrono::steady_clock::now() + kSearchInterval);
      }
    }
    const std::string seconds = format_printf("%.1f", static_cast<double>(limit_.count()) / 1000);
    for (Asked& asked : asked_) {
      if (asked.done) continue;
      asked.result.set_missing(asked.failure.empty()
                                   ? "it wrote none within " + seconds +
                                         " s; with TORCH_NCCL_DUMP_ON_TIMEOUT=1 PyTorch looks at "
                                         "its pipe every second"
                                   : "its dump is damaged: " + asked.failure);
      set_result(asked.place, asked.result);
    }
  }
  // PyTorch writes a dump in place: it is read when it has stopped growing.
  bool inspect(Asked* asked, bool last_time) {
    for (Dump& dump : asked->dumps) {
      const FileState now = state_of(dump.path);
      const bool still = now == std::exchange(dump.last, now);
      if (now.size <= 0 || now == dump.before || (!still && !last_time)) continue;
      if (read(asked, dump.path)) return true;
      dump.before = now;  // not again until it changes
    }
    return false;
  }
  bool read(Asked* asked, const std::string& path) {
    RankCollectives& result = asked->result;
    std::string bytes;
    try {
      bytes = read_dump(path);
      RankCollectives calls =
          calls_of_flight_dump(bytes, path,
                               {.rank = result.rank(),
                                .world_size = asked->world_size,
                                .unix_time = static_cast<int64_t>(unix_seconds() * 1e9)});
      *result.mutable_groups() = std::move(*calls.mutable_groups());
    } catch (const std::exception& error) {  // including lack of memory
      asked->failure = error.what();
      return false;
    }
    result.clear_missing();
    set_result(asked->place, result);
    if (folder_.empty()) return true;
    const std::string copy = folder_ + kCopy;
    try {
      replace_owned_file(copy + std::to_string(result.rank()), bytes, {.sync = false});
      result.set_dump(copy);
      set_result(asked->place, result);
    } catch (const Error& error) {
      spdlog::warn("{}", error.what());
    }
    return true;
  }
  size_t add_result(const RankCollectives& result) {
    const MutexLock lock(mutex_);
    results_.push_back(result);
    return results_.size() - 1;
  }
  void set_result(size_t place, const RankCollectives& result) {
    const MutexLock lock(mutex_);
    results_[place] = result;
  }
  static FileState state_of(const std::string& path) {
    struct stat status;
    if (::lstat(path.c_str(), &status) != 0) return {};
    return {static_cast<int64_t>(status.st_ino), status.st_size,
            status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
  }

  const std::vector<Target> targets_;
  const std::string folder_;
  const std::chrono::milliseconds limit_;
  std::vector<Asked> asked_;  // state of run()

  mutable Mutex mutex_;
  mutable CondVar changed_;
  std::vector<RankCollectives> results_ FLEET_GUARDED_BY(mutex_);
  bool ended_ FLEET_GUARDED_BY(mutex_) = false;
  bool cancelled_ FLEET_GUARDED_BY(mutex_) = false;
};

FlightCollector::~FlightCollector() {
  if (!search_) return;
  search_->cancel();
  search_->wait_until_ended(std::chrono::steady_clock::now() + std::chrono::seconds(1));
}

void FlightCollector::collect(const std::vector<Target>& targets, const std::string& folder,
                              std::chrono::milliseconds limit, Done on_done) {
  if (on_done_) return;
  on_done_ = std::move(on_done);
  deadline_ = running_now() + limit;
  // A search that a disk has blocked is not joined by another one.
  if (!search_ || search_->ended()) {
    search_ =
        std::make_shared<FlightSearch>(targets, folder, std::max(limit - kReadTime, limit / 2));
    // Without a thread there are no dumps.
    if (!start_detached([search = search_] { search->run(); })) search_.reset();
  }
  poll_later();
}

void FlightCollector::poll_later() {
  timer_.after(kPollInterval, [this] { poll(); });
}

void FlightCollector::poll() {
  if (!search_) return std::exchange(on_done_, nullptr)({});
  if (search_->ended() || running_now() >= deadline_) {
    return std::exchange(on_done_, nullptr)(search_->results());
  }
  poll_later();
}

}  // namespace fleet
