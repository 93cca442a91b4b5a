// Captures the log, for tests.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

namespace fleet {

// Keeps what the log says while it lives.
class LogCapture {
 public:
  LogCapture() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(captured_log_)));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  std::string captured_log() const { return captured_log_.str(); }

 private:
  std::ostringstream captured_log_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

// The log lines of `body`.
template <typename Body>
std::string captured_log(Body body) {
  const LogCapture capture;
  body();
  return capture.captured_log();
}

}  // namespace fleet
