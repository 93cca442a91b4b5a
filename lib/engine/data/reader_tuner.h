// Chooses the number of reader threads and of batches ahead while a job runs (data.threads=auto,
// data.prefetch=auto). Pure logic: the pipeline measures and obeys. Internal to data.
#pragma once

#include <cstdint>

namespace fleet::data {

// The most worker threads of a rank (data.threads).
inline constexpr int kMaxReaderThreads = 64;

struct ReaderSize {
  int threads = 1, prefetch = 2;
  bool operator==(const ReaderSize&) const = default;
};

// Grows what holds the reader up, as long as the consumer waits for batches and growing makes it
// faster; takes back what has not helped, and tries again after a while.
class ReaderTuner {
 public:
  struct Options {
    ReaderSize first;  // the values to begin with
    ReaderSize most;   // equal to `first`: not tuned
  };
  explicit ReaderTuner(const Options& options) : options_(options), size_(options.first) {}

  // Measurements while size() held.
  struct Window {
    double seconds = 0;  // its length
    int64_t batches = 0;
    double waited = 0;  // seconds that the consumer waited for batches
    double idle = 0;    // seconds that threads had no batch to make, summed over the threads
  };
  // Whether a window is long enough for a decision.
  static bool is_long_enough(double seconds, int64_t batches);
  // The size for the next window.
  ReaderSize next(const Window& window);
  const ReaderSize& size() const { return size_; }

 private:
  bool grow(const Window& window);

  const Options options_;
  ReaderSize size_, before_;
  double rate_before_ = 0;  // batches a second at before_
  bool tries_ = false;      // size_ is a trial: before_ was worse, or not
  int hold_ = 0;            // windows without another trial
};

}  // namespace fleet::data
