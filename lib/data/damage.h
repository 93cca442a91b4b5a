// Which samples of a source cannot be used, and what users read about it. Internal to data.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "data/source.h"

namespace fleet::data {

struct Damaged {
  int64_t sample;
  std::string why;
};

// All methods may be called from any thread.
class DamageLog {
 public:
  struct Options {
    bool fail = false;        // the first one is an error
    bool evaluation = false;  // it does not count, instead of being replaced
    double read_timeout = 0;  // seconds
  };
  // The source must outlive it.
  DamageLog(const Source& source, const Options& options) : source_(source), options_(options) {}

  // Reading the sample did not end: nobody tries again.
  void stalled(int64_t sample);
  // Whether it is such a one, and the reason. kIo where there are many.
  bool is_stalled(int64_t sample, std::string* why) const;
  // All that was tried for one place of a batch: kUsage where that is reason enough to end.
  void check(const std::vector<Damaged>& damaged) const;
  // A line on each that has had none.
  void name(const std::vector<Damaged>& damaged);
  void name_slow(int64_t sample, int64_t seconds) const;

 private:
  const Source& source_;
  const Options options_;
  mutable std::mutex mutex_;
  std::set<int64_t> named_, stalled_;
  std::atomic<bool> any_stalled_{false};
};

}  // namespace fleet::data
