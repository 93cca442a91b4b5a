// Keeps track of the unusable samples of a source, and reports them. Internal to data.
#pragma once

#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "data/source.h"

namespace fleet::data {

struct Damaged {
  int64_t sample;
  std::string why;
};

// All methods may be called from any thread.
class DamagedSampleLog {
 public:
  struct Options {
    bool fail = false;        // the first damaged image is an error
    bool evaluation = false;  // a damaged image is excluded instead of replaced
    double read_timeout = 0;  // seconds
  };
  // The source must outlive it.
  DamagedSampleLog(const Source& source, const Options& options)
      : source_(source), options_(options) {}

  // Records that reading the sample never ended: nobody reads it again.
  void stalled(int64_t sample);
  // Whether reading this sample never ended, and the reason. kIo if there are many such samples.
  bool is_stalled(int64_t sample, std::string* why) const;
  // Checks all samples tried for one place of a batch: kUsage if they are reason enough to end.
  void check(const std::vector<Damaged>& damaged) const;
  // Logs a line for each sample that has not been reported yet.
  void report(const std::vector<Damaged>& damaged);
  void report_slow(int64_t sample, int64_t seconds) const;

 private:
  const Source& source_;
  const Options options_;
  mutable Mutex mutex_;
  std::set<int64_t> named_ FLEET_GUARDED_BY(mutex_), stalled_ FLEET_GUARDED_BY(mutex_);
  std::atomic<bool> any_stalled_{false};
};

}  // namespace fleet::data
