#include "node/sweep.h"

#include <signal.h>

#include <utility>

#include "node/process_tree.h"

namespace fleet {

constexpr std::chrono::seconds kStuckAfter{10};

Sweep::Sweep(boost::asio::io_context& loop, std::vector<pid_t> except,
             std::function<void(std::string)> on_gone)
    : except_(std::move(except)), on_gone_(std::move(on_gone)), limit_(loop) {}

void Sweep::start() {
  if (started_) return;
  started_ = true;
  limit_.expires_after(kStuckAfter);
  limit_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    std::string stuck;
    for (const pid_t pid : descendants(except_)) {
      stuck += (stuck.empty() ? "" : "\n") + describe_process(pid);
    }
    finish(std::move(stuck));
  });
  step();
}

void Sweep::on_children_changed() {
  if (started_) step();
}

void Sweep::step() {
  if (finished_) return;
  if (!has_descendants(except_)) return finish({});
  for (const pid_t pid : descendants(except_)) ::kill(pid, SIGKILL);
}

void Sweep::finish(std::string stuck) {
  if (finished_) return;
  finished_ = true;
  limit_.cancel();
  on_gone_(std::move(stuck));
}

}  // namespace fleet
