#include "node/job_logs.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace fleet {
namespace {

// A console that takes nothing for so long is given up once the job is over.
constexpr std::chrono::seconds kConsoleAfter{2};
constexpr size_t kReadSize = 256 << 10;

std::vector<std::string> paths_of(const SpawnRanks& spawn) {
  std::vector<std::string> paths;
  for (const RankCommand& rank : spawn.ranks) {
    paths.push_back(rank.log_path);
    if (!rank.error_log_path.empty()) paths.push_back(rank.error_log_path);
  }
  return paths;
}

}  // namespace

JobLogs::JobLogs(boost::asio::io_context& loop)
    : loop_(loop), console_(loop, STDOUT_FILENO), lines_(loop, console_), limit_(loop) {
  console_.on_room([this] {
    for (const auto& log : logs_) log->resume();
    if (console_.idle()) done();
  });
}

void JobLogs::begin(const SpawnRanks& spawn) {
  for (const auto& log : logs_) log->finish();
  logs_.clear();
  settings_ = spawn.logs;
  lines_.begin(settings_);
  console_.drop_when_full(settings_.drop);
  if (!spawn.ranks.empty()) console_.say_where(spawn.ranks.front().log_path);
  if (buffer_.empty()) buffer_.resize(kReadSize);
  if (!folder_) folder_.emplace(settings_, paths_of(spawn));
}

RankLog* JobLogs::open(const RankCommand& command, RankOutput output) {
  std::vector<LogFile> files;
  for (const std::string& path : {command.log_path, command.error_log_path}) {
    if (!path.empty()) files.emplace_back(&*folder_, path, !opened_.insert(path).second);
  }
  const LogSurroundings around{loop_, console_, lines_, settings_, buffer_};
  logs_.push_back(std::make_unique<RankLog>(around, command, std::move(output), std::move(files)));
  return logs_.back().get();
}

void JobLogs::finish(std::function<void()> on_done) {
  for (const auto& log : logs_) log->finish();
  lines_.flush();
  on_done_ = std::move(on_done);
  if (console_.idle()) return done();
  wait_for_console();
}

void JobLogs::wait_for_console() {
  limit_.expires_after(kConsoleAfter);
  limit_.async_wait([this, before = console_.taken()](boost::system::error_code error) {
    if (error) return;
    if (console_.taken() != before) return wait_for_console();
    spdlog::warn("{} of the ranks' output are not shown: standard output takes no more",
                 mebibytes(console_.waiting()));
    done();
  });
}

void JobLogs::done() {
  if (!on_done_) return;
  limit_.cancel();
  std::exchange(on_done_, nullptr)();
}

}  // namespace fleet
