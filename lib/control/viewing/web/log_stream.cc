#include <chrono>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "node/log_reader.h"
#include "viewing/web/job_site.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kInterval{300};
constexpr size_t kChunk = 64 << 10;

std::string log_event_of(const std::string& text, bool error) {
  const Json json = {{"error", error}, {"text", text}};
  return server_sent_event("lines", json.dump_lossy());
}

// Its timer keeps it alive until the browser has gone.
class LocalLogStream : public std::enable_shared_from_this<LocalLogStream> {
 public:
  LocalLogStream(EventLoop& loop, std::shared_ptr<HttpStream> stream)
      : timer_(loop), stream_(std::move(stream)) {}

  void add(const std::string& path, const LogPosition& begin, const LogPosition& end, bool error) {
    const LogPosition tail = tail_of_log(path, begin, end, kPastLogBytes);
    const bool cut = tail.at() > 0 && (tail.at() != begin.at() || tail.file() != begin.file());
    logs_.push_back(std::make_unique<Log>(path, cut, error));
    logs_.back()->reader.begin_at(tail);
    logs_.back()->reader.end_at(end);
  }

  void run() {
    if (!stream_->open()) return;
    try {
      for (const auto& log : logs_) send_new(log.get());
    } catch (const Error& error) {  // it cannot be read
      stream_->send(
          std::make_shared<const std::string>(log_event_of(error.failure() + "\n", true)));
      return stream_->close();
    }
    timer_.after(kInterval, [self = shared_from_this()] { self->run(); });
  }

 private:
  struct Log {
    Log(const std::string& path, bool cut, bool error) : reader(path), lines(cut, error) {}
    LogReader reader;
    LogLines lines;
  };

  // Reads on only when the browser has read.
  void send_new(Log* log) {
    while (stream_->open() && stream_->queued() < kChunk) {
      const std::string bytes = log->reader.next(kChunk);
      if (bytes.empty()) return;
      stream_->send(std::make_shared<const std::string>(log->lines.add(bytes)));
    }
  }

  LoopTimer timer_;
  const std::shared_ptr<HttpStream> stream_;
  std::vector<std::unique_ptr<Log>> logs_;
};

}  // namespace

std::string LogLines::add(std::string_view bytes) {
  const std::string safe = filter_.pass(bytes);
  lines_.add(safe);
  std::string text;
  for (std::string_view line; lines_.next(&line);) {
    if (std::exchange(cut_, false)) continue;
    if (!line.ends_with('\r')) text += line;
  }
  return text.empty() ? "" : log_event_of(text, error_);
}

void stream_local_log(EventLoop& loop, const JobRecord::Rank& rank,
                      std::shared_ptr<HttpStream> stream) {
  if (rank.log_path().empty() && rank.error_log().empty()) {
    throw Error(ErrorCode::kNotFound, "its output is not kept",
                "rank " + std::to_string(rank.rank()));
  }
  const auto log = std::make_shared<LocalLogStream>(loop, std::move(stream));
  if (!rank.log_path().empty()) {
    log->add(rank.log_path(), rank.log_begin(), rank.log_end(), false);
  }
  if (!rank.error_log().empty()) {
    log->add(rank.error_log(), rank.error_begin(), rank.error_end(), true);
  }
  log->run();
}

}  // namespace fleet
