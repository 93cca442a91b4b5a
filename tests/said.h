// What the log says, for tests.
#pragma once

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <string>

namespace fleet {

// Keeps what the log says while it lives.
class Listener {
 public:
  Listener() {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>(
        "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(said_)));
  }
  ~Listener() { spdlog::set_default_logger(before_); }
  std::string said() const { return said_.str(); }

 private:
  std::ostringstream said_;
  const std::shared_ptr<spdlog::logger> before_ = spdlog::default_logger();
};

// What is logged while `body` runs.
template <typename Body>
std::string said(Body body) {
  const Listener listener;
  body();
  return listener.said();
}

}  // namespace fleet
