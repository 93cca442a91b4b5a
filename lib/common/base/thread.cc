#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <climits>

#include "base/env.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace fleet {

Thread::Thread(const std::string& name, std::function<void()> body)
    : outcome_(std::make_unique<Outcome>()),
      thread_([outcome = outcome_.get(), name, body = std::move(body)] {
        pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
        try {
          body();
        } catch (...) {
          outcome->error = std::current_exception();
        }
      }) {}

Thread::~Thread() {
  if (thread_.joinable()) thread_.join();
}

void Thread::join() {
  thread_.join();
  if (outcome_->error) std::rethrow_exception(outcome_->error);
}

std::vector<int> available_cores() {
  std::vector<int> cores;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &set)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::optional<int> openmp_threads() {
  const auto text = get_env("OMP_NUM_THREADS");
  if (!text || trim(*text).empty()) return std::nullopt;
  std::vector<int> numbers;
  for (const std::string& part : split(*text, ',')) {
    long long number = 0;
    if (!parse_int(trim(part), &number) || number < 1 || number > INT_MAX) break;
    numbers.push_back(static_cast<int>(number));
  }
  if (numbers.size() == split(*text, ',').size()) return numbers.front();
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    spdlog::warn("OMP_NUM_THREADS={} is ignored: write one number from 1, or a list such as 4,2",
                 shown_name(*text));
  }
  return std::nullopt;
}

void pin_to_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  if (!cores.empty()) (void)sched_setaffinity(0, sizeof set, &set);
}

}  // namespace fleet
