// Threads that do not lose exceptions, and CPU affinity.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace fleet {

// A named thread. join() rethrows an exception that ended it; the destructor joins and drops the
// exception.
class Thread {
 public:
  Thread() = default;
  // Throws kIo, naming the limits, if the system refuses a thread.
  Thread(const std::string& name, std::function<void()> body);
  Thread(Thread&&) = default;
  Thread& operator=(Thread&&) = default;
  ~Thread();
  bool joinable() const { return thread_.joinable(); }
  void join();

 private:
  struct Outcome {
    std::exception_ptr error;
  };
  std::unique_ptr<Outcome> outcome_;
  std::thread thread_;
};

// Starts up to `count` threads of the same name for work that they share: as many as the system
// allows. Throws like Thread if it allows none.
std::vector<Thread> start_threads(size_t count, const std::string& name,
                                  const std::function<void()>& body);

// Starts a thread that is never joined. Returns whether the system allowed it. Exceptions of `body`
// end the process.
bool start_detached(std::function<void()> body);

// While one exists, the calling thread handles the refusal of a new thread itself. Without one,
// fleetrun and fleet-worker end with a line (thread_creation.cc): gRPC would wait forever for a
// thread that does not exist. Thread, start_threads() and start_detached() make their own.
class HandlesRefusedThreads {
 public:
  HandlesRefusedThreads() { ++count_; }
  ~HandlesRefusedThreads() { --count_; }
  HandlesRefusedThreads(const HandlesRefusedThreads&) = delete;
  static bool any() { return count_ > 0; }

 private:
  static inline constinit thread_local int count_ = 0;
};

// The cores this process may run on (its affinity mask), ascending.
std::vector<int> available_cores();
// The number of threads that OMP_NUM_THREADS gives to a parallel region: the first of a list
// ("4,2"); nullopt if the variable is not set, or, with a warning once per process, if OpenMP
// ignores its value ("1.0", "abc", "0").
std::optional<int> openmp_threads();
// Restricts the calling thread (and threads it creates later) to these cores; a refusal is ignored.
void pin_to_cores(const std::vector<int>& cores);

}  // namespace fleet
