#include "node/guardian_watchdog.h"

#include <chrono>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/log.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kWatchdogDelay{10};

}  // namespace

GuardianWatchdog::GuardianWatchdog(EventLoop& loop, UniqueFd alive, std::string mark,
                                   std::string job, Handlers handlers)
    : handlers_(std::move(handlers)),
      timer_(loop),
      watchdog_(std::move(alive), std::move(mark), std::move(job)),
      signals_(loop) {}

void GuardianWatchdog::start_soon() {
  if (pid() > 0) return;
  timer_.after(kWatchdogDelay, [this] {
    UniqueFd signals = watchdog_.start();
    if (pid() > 0) handlers_.on_started(pid());
    if (signals) listen(std::move(signals));
  });
}

void GuardianWatchdog::listen(UniqueFd signals) {
  try {
    signals_.assign(std::move(signals));
    read();
  } catch (const Error& error) {  // the kernel watches no more descriptors
    spdlog::debug("the watchdog passes no signals: {}", error.what());
  }
}

void GuardianWatchdog::read() {
  signals_.read_some(bytes_, [this](std::error_code error, size_t n) {
    if (error) return;  // it has ended
    for (size_t i = 0; i < n; ++i) handlers_.on_signal(bytes_[i]);
    read();
  });
}

}  // namespace fleet
