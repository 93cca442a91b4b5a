// The progress of a rank, in memory shared with its launcher: a rank with our engine updates it at
// every step, for the price of a few stores; the launcher reads it at any time, and asks for a
// trace here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/mutex.h"
#include "observe/server_progress.h"
#include "observe/shared_memory.h"

namespace fleet {

// The variable in which the launcher passes the file to map.
inline constexpr char kEnvProgressFile[] = "FLEET_PROGRESS_FILE";

// Totals of a process in its training steps, without evaluations and saves. In nanoseconds, except
// `samples`.
struct StepTotals {
  int64_t waited = 0;    // for other ranks, in all threads; also while the step computed
  int64_t samples = 0;   // trained
  int64_t time = 0;      // spent in the steps
  int64_t input = 0;     // part of `time`: waiting for batches
  int64_t exposed = -1;  // part of `time`: waiting for collectives; -1: the device hides it
  // Of these, what every step waits: the least wait of the last eight steps, summed over the steps.
  // The rest comes from ranks that arrive at different times.
  int64_t exchange = 0;
  int64_t making = 0;   // the data threads at work
  int64_t reading = 0;  // part of the above: reading samples

  bool operator==(const StepTotals&) const = default;
};

struct RankProgress {
  int64_t ticks = 0;             // rises with every kind of progress: steps, evaluation, saving
  int64_t steps = 0;             // done by this process
  int64_t step = 0;              // in the whole training, including steps before a resume
  int64_t epoch = 0;             // from 0
  int64_t checkpoint = -1;       // step of the last checkpoint on the disk; -1: none
  int64_t step_at_ns = 0;        // end of the last step, CLOCK_MONOTONIC
  int64_t first_step_at_ns = 0;  // end of the first step of this process
  StepTotals totals;             // up to step_at_ns
  int64_t stage = 0;             // in a pipeline; valid if stages > 0
  int64_t stages = 0;
  int64_t target = 0;               // the step at which training ends; 0: unknown
  int64_t data_threads = 0;         // that make batches; 0: the training thread does
  int64_t losses = 0;               // number of losses fetched; 0: `loss` is not known
  double loss = 0;                  // the last one
  double accuracy = -1;             // fetched with it; -1: not known
  double evaluation_accuracy = -1;  // in the last evaluation; -1: not known
  int64_t replaceable = 0;          // 1: if it dies, another process can take its place
  // Of the lost rank whose place this process has taken, in samples; -1: it has taken none.
  int64_t repeated_samples = -1;  // trained again
  int64_t lost_samples = -1;      // whose gradients some servers lack

  bool operator==(const RankProgress&) const = default;
};

// The rank's end. Calls do nothing if there is no such file (no launcher, or it may not be
// accessed). Thread-safe, as long as one ProgressWriter of the process writes.
class ProgressWriter {
 public:
  static ProgressWriter from_env();
  explicit ProgressWriter(const std::string& path);
  ProgressWriter() = default;

  // Published with the next progress.
  void in_pipeline(int64_t stage, int64_t stages);
  void planned(int64_t target, int64_t data_threads);
  void fetched(double loss, double accuracy);
  void evaluated(double accuracy);
  void took_place(int64_t repeated_samples, int64_t lost_samples);
  void step_done(int64_t step, int64_t epoch, const StepTotals& totals);
  void saved(int64_t step);
  void tick();  // reports progress other than a step
  void set_replaceable(bool replaceable);
  // Stops reporting: the rank is ending, or is entering a phase that has no steps.
  void finish();
  // Changes when the launcher asks for a trace; 0: never so far. One load.
  uint64_t trace_request() const;
  // The file of the trace that it asked for (trace_recorder.h).
  std::string trace_path(uint64_t request) const;

 private:
  void publish() FLEET_REQUIRES(mutex_);
  SharedMemory memory_;
  std::string folder_;  // where the launcher's files are
  Mutex mutex_;
  RankProgress now_ FLEET_GUARDED_BY(mutex_);
};

// The launcher's end: creates the file, which exists in memory only, and reads it.
class ProgressReader {
 public:
  ProgressReader();  // kIo

  // The path for processes of this user, valid as long as this object lives.
  std::string path() const { return memory_.path(); }
  // nullopt before the first tick. After finish() ticks is 0. If the writer was stopped in the
  // middle of its stores (preempted, or dead), returns the previous values.
  std::optional<RankProgress> read();
  // Likewise: the numbers that a parameter server, and a trainer that uses servers, have published.
  std::optional<ServerProgress> read_server();
  std::optional<ServerUse> read_use();
  bool replaceable();  // also before the first tick
  // Asks the rank to write a trace to this file of the calling process (TraceReader::file()).
  void request_trace(int file);

 private:
  SharedMemory memory_;
  RankProgress seen_;  // the last consistent snapshot
  ServerProgress server_;
  ServerUse use_;
};

}  // namespace fleet
