#include <signal.h>

#include <utility>

#include "node/guardian.h"
#include "node/process_tree.h"

namespace fleet {

constexpr std::chrono::seconds kStuckAfter{10};

ProcessTreeReaper::ProcessTreeReaper(EventLoop& loop, std::vector<pid_t> except,
                                     std::function<void(std::string)> on_gone)
    : except_(std::move(except)), on_gone_(std::move(on_gone)), limit_(loop) {}

void ProcessTreeReaper::start() {
  if (running_) return;
  running_ = true;
  limit_.after(kStuckAfter, [this] {
    std::string stuck;
    for (const pid_t pid : descendants(except_)) {
      stuck += (stuck.empty() ? "" : "\n") + describe_process(pid);
    }
    finish(std::move(stuck));
  });
  step();
}

void ProcessTreeReaper::on_children_changed() {
  if (running_) step();
}

void ProcessTreeReaper::step() {
  if (!has_descendants(except_)) return finish({});
  for (const pid_t pid : descendants(except_)) ::kill(pid, SIGKILL);
}

void ProcessTreeReaper::finish(std::string stuck) {
  running_ = false;
  limit_.cancel();
  on_gone_(std::move(stuck));
}

}  // namespace fleet
