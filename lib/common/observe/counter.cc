#include "observe/counter.h"

namespace fleet {

namespace {
template <typename T>
T& find_or_make(std::map<std::string, std::unique_ptr<T>>& all, const std::string& name) {
  std::unique_ptr<T>& place = all[name];
  if (!place) place = std::make_unique<T>();
  return *place;
}
}  // namespace

Counter& Counters::counter(const std::string& name) {
  const MutexLock lock(mutex_);
  return find_or_make(counters_, name);
}

Timer& Counters::timer(const std::string& name) {
  const MutexLock lock(mutex_);
  return find_or_make(timers_, name);
}

std::map<std::string, double> Counters::snapshot() const {
  const MutexLock lock(mutex_);
  std::map<std::string, double> values;
  for (const auto& [name, counter] : counters_) {
    values[name] = static_cast<double>(counter->value());
  }
  for (const auto& [name, timer] : timers_) {
    values[name + ".seconds"] = timer->seconds();
    values[name + ".uses"] = static_cast<double>(timer->uses());
  }
  return values;
}

}  // namespace fleet
