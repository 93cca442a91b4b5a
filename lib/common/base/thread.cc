#include "base/thread.h"

#include <pthread.h>
#include <sched.h>

#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/log.h"

namespace fleet {

Thread::Thread(const std::string& name, std::function<void()> body)
    : outcome_(std::make_unique<Outcome>()) {
  const HandlesRefusedThreads handled;
  try {
    thread_ = std::thread([outcome = outcome_.get(), name, body = std::move(body)] {
      pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
      try {
        body();
      } catch (...) {
        outcome->error = std::current_exception();
      }
    });
  } catch (const std::system_error& error) {
    throw SystemError(ErrorCode::kIo, "cannot create a thread (" + name + ")", error.code().value(),
                      {}, Wanted::kProcess);
  }
}

Thread::~Thread() {
  if (thread_.joinable()) thread_.join();
}

void Thread::join() {
  thread_.join();
  if (outcome_->error) std::rethrow_exception(outcome_->error);
}

std::vector<Thread> start_threads(size_t count, const std::string& name,
                                  const std::function<void()>& body) {
  std::vector<Thread> threads;
  threads.reserve(count);
  try {
    while (threads.size() < count) threads.emplace_back(name, body);
  } catch (const SystemError& error) {
    if (threads.empty()) throw;
    spdlog::warn("{} threads instead of {}: {}", threads.size(), count, error.what());
  }
  return threads;
}

bool start_detached(std::function<void()> body) {
  const HandlesRefusedThreads handled;
  try {
    std::thread(std::move(body)).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
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

void pin_to_cores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int core : cores) CPU_SET(core, &set);
  if (!cores.empty()) (void)sched_setaffinity(0, sizeof set, &set);
}

}  // namespace fleet
