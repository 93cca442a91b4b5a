#include "node/flight_collector.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/owned_file.h"
#include "node/flight_dump.h"
#include "node/flight_settings.h"
#include "node/process_tree.h"

namespace fleet {

namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kPollInterval{50};
constexpr char kCopy[] = "/flight_recorder_";

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
    if (n <= 0) break;  // cut meanwhile
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

}  // namespace

FlightCollector::FileState FlightCollector::state_of(const std::string& path) {
  struct stat status;
  if (::lstat(path.c_str(), &status) != 0) return {};
  return {static_cast<int64_t>(status.st_ino), status.st_size,
          status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec};
}

void FlightCollector::ask(const Target& target, const std::vector<pid_t>& processes) {
  const FlightSettings settings = flight_settings_of(processes);
  if (!settings.has_pipe && !uses_torch(processes)) return;
  RankCollectives& result = results_.emplace_back();
  result.set_rank(target.rank);
  result.set_local_rank(target.local_rank);
  result.set_state(process_state(target.pid));
  result.set_recorder_off(!settings.has_pipe);
  if (!settings.has_pipe) return;
  if (result.state() == 'T' || result.state() == 't') return result.set_missing("it is stopped");
  Asked asked;
  asked.result = results_.size() - 1;
  asked.world_size = settings.world_size;
  for (const std::string& prefix : settings.dumps) {
    const std::string path = prefix + std::to_string(target.rank);
    const FileState state = state_of(path);
    asked.dumps.push_back({path, state, state});
  }
  const std::string why = trigger(settings.pipe + std::to_string(target.rank) + ".pipe");
  if (!why.empty()) return result.set_missing(why);
  asked_.push_back(std::move(asked));
}

void FlightCollector::collect(const std::vector<Target>& targets, const std::string& folder,
                              std::chrono::milliseconds limit, Done on_done) {
  if (on_done_) return;
  on_done_ = std::move(on_done);
  folder_ = folder;
  limit_ = limit;
  deadline_ = std::chrono::steady_clock::now() + limit;
  asked_.clear();
  results_.clear();
  const std::vector<std::vector<pid_t>> processes = processes_of(targets);
  for (size_t i = 0; i < targets.size(); ++i) ask(targets[i], processes[i]);
  // Deferred: the callback must not run within this call.
  asio::post(loop_, [this] { poll(); });
}

void FlightCollector::poll() {
  const bool last_time = std::chrono::steady_clock::now() >= deadline_;
  for (Asked& asked : asked_) {
    if (!asked.done) asked.done = inspect(&asked, last_time);
  }
  const bool all =
      std::all_of(asked_.begin(), asked_.end(), [](const Asked& asked) { return asked.done; });
  if (all || last_time) return finish();
  timer_.expires_after(kPollInterval);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) poll();
  });
}

// PyTorch writes a dump in place: it is read when it has stopped growing.
bool FlightCollector::inspect(Asked* asked, bool last_time) {
  for (Dump& dump : asked->dumps) {
    const FileState now = state_of(dump.path);
    const bool still = now == std::exchange(dump.last, now);
    if (now.size <= 0 || now == dump.before || (!still && !last_time)) continue;
    if (read(asked, dump.path)) return true;
    dump.before = now;  // not again until it changes
  }
  return false;
}

bool FlightCollector::read(Asked* asked, const std::string& path) {
  RankCollectives& result = results_[asked->result];
  std::string bytes;
  try {
    bytes = read_dump(path);
    RankCollectives calls =
        calls_of_flight_dump(bytes, path,
                             {.rank = result.rank(),
                              .world_size = asked->world_size,
                              .unix_time = static_cast<int64_t>(unix_seconds() * 1e9)});
    *result.mutable_groups() = std::move(*calls.mutable_groups());
  } catch (const Error& error) {
    asked->failure = error.what();
    return false;
  }
  if (folder_.empty()) return true;
  const std::string copy = folder_ + kCopy;
  try {
    replace_owned_file(copy + std::to_string(result.rank()), bytes, {.sync = false});
    result.set_dump(copy);
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
  }
  return true;
}

void FlightCollector::finish() {
  for (const Asked& asked : asked_) {
    if (asked.done) continue;
    char seconds[16];
    std::snprintf(seconds, sizeof seconds, "%.1f", static_cast<double>(limit_.count()) / 1000);
    results_[asked.result].set_missing(
        asked.failure.empty() ? "it wrote none within " + std::string(seconds) +
                                    " s; with TORCH_NCCL_DUMP_ON_TIMEOUT=1 PyTorch looks at its "
                                    "pipe every second"
                              : "its dump is damaged: " + asked.failure);
  }
  std::exchange(on_done_, nullptr)(std::move(results_));
}

}  // namespace fleet
