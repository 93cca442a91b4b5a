// Threads that do not lose exceptions, and CPU affinity.
#pragma once

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

// The cores this process may run on (its affinity mask), ascending.
std::vector<int> available_cores();
// The number of threads that OMP_NUM_THREADS gives to a parallel region: the first of a list
// ("4,2"); nullopt if the variable is not set, or, with a warning once per process, if OpenMP
// ignores its value ("1.0", "abc", "0").
std::optional<int> openmp_threads();
// Restricts the calling thread (and threads it creates later) to these cores; a refusal is ignored.
void pin_to_cores(const std::vector<int>& cores);

}  // namespace fleet
