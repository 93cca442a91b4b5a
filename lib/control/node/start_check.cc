#include "node/start_check.h"

#include <utility>
#include <variant>

namespace fleet {

void StartCheck::run(const Assignment& assignment, std::function<void(Outcome)> done) {
  checking_ = true;
  if (thread_.joinable()) thread_.join();
  thread_ = Thread("check", [this, assignment, done = std::move(done)] {
    Outcome outcome;
    try {
      outcome.failed = check_(assignment);
    } catch (const Error& error) {
      outcome.error = error;
    }
    loop_.post([this, outcome = std::move(outcome), done]() mutable {
      checking_ = false;
      outcome.held = std::exchange(held_, {});
      done(std::move(outcome));
    });
  });
}

bool StartCheck::hold(RendezvousEvent& event) {
  if (!checking_) return false;
  const auto* message = std::get_if<wire::HostMessage>(&event);
  const bool waits = std::holds_alternative<HostLost>(event) ||
                     (message && (message->has_restart() || message->has_verdict()));
  if (waits) held_.push_back(std::move(event));
  return waits;
}

}  // namespace fleet
