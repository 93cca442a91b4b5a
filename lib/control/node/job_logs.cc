#include "node/job_logs.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "base/log.h"
#include "base/text.h"

namespace fleet {
namespace {

// Once the job is over, a console that accepts nothing for this long is given up.
constexpr std::chrono::seconds kConsoleAfter{2};
constexpr size_t kReadSize = 256 << 10;

std::vector<std::string> paths_of(const wire::SpawnRanks& spawn) {
  std::vector<std::string> paths;
  for (const wire::RankCommand& rank : spawn.ranks()) {
    if (!rank.log_path().empty()) paths.push_back(rank.log_path());
    if (!rank.error_log_path().empty()) paths.push_back(rank.error_log_path());
  }
  return paths;
}

}  // namespace

JobLogs::JobLogs(boost::asio::io_context& loop)
    : loop_(loop),
      output_(loop, STDOUT_FILENO),
      errors_(loop, STDERR_FILENO),
      output_lines_(loop, output_),
      error_lines_(loop, errors_),
      limit_(loop) {
  for (Console* console : {&output_, &errors_}) {
    console->on_drained([this] {
      for (const auto& log : logs_) log->resume();
      if (idle()) done();
    });
  }
}

void JobLogs::begin(const wire::SpawnRanks& spawn) {
  for (const auto& log : logs_) log->finish();
  logs_.clear();
  settings_ = spawn.logs();
  output_lines_.begin(settings_, settings_.output());
  error_lines_.begin(settings_, settings_.errors());
  output_copies_.begin(settings_.output_copies());
  error_copies_.begin(settings_.error_copies());
  output_.drop_when_full(settings_.output().drop());
  errors_.drop_when_full(settings_.errors().drop());
  if (!spawn.ranks().empty()) {
    output_.set_log_hint(spawn.ranks(0).log_path());
    errors_.set_log_hint(spawn.ranks(0).log_path());
  }
  if (buffer_.empty()) buffer_.resize(kReadSize);
  if (!folder_) folder_.emplace(settings_, paths_of(spawn));
}

RankLog* JobLogs::open(const wire::RankCommand& command, RankOutput pipes) {
  std::vector<std::optional<LogFile>> files;
  const auto add_file = [&](const std::string& path) {
    files.emplace_back();
    if (!path.empty()) files.back().emplace(&*folder_, path, !opened_.insert(path).second);
  };
  add_file(command.log_path());
  if (command.splits_streams()) add_file(command.error_log_path());
  ConsoleTarget output_target{output_, output_lines_}, error_target{errors_, error_lines_};
  // On one terminal, both streams share one path, so that they keep their order.
  const LogContext context{
      loop_,          output_target, settings_.errors_apart() ? error_target : output_target,
      output_copies_, error_copies_, settings_,
      buffer_};
  logs_.push_back(std::make_unique<RankLog>(context, command, std::move(pipes), std::move(files)));
  return logs_.back().get();
}

void JobLogs::finish(std::function<void()> on_done) {
  for (const auto& log : logs_) log->finish();
  output_lines_.flush();
  error_lines_.flush();
  on_done_ = std::move(on_done);
  if (idle()) return done();
  wait_for_consoles();
}

void JobLogs::wait_for_consoles() {
  limit_.expires_after(kConsoleAfter);
  const int64_t taken = output_.taken() + errors_.taken();
  limit_.async_wait([this, taken](boost::system::error_code error) {
    if (error) return;
    if (output_.taken() + errors_.taken() != taken) return wait_for_consoles();
    spdlog::warn("{} of the ranks' output are not shown: standard {} accepts no more data",
                 mebibytes(output_.waiting() + errors_.waiting()),
                 output_.idle() ? "error" : "output");
    done();
  });
}

void JobLogs::done() {
  if (!on_done_) return;
  limit_.cancel();
  std::exchange(on_done_, nullptr)();
}

}  // namespace fleet
