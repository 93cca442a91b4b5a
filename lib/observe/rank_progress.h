// How far a rank has come, in memory that it and its launcher share: a rank of ours says so at
// every step, for the price of a few stores; the launcher looks whenever it likes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/file.h"

namespace fleet {

// What the launcher tells a rank: the file to map.
inline constexpr char kEnvProgressFile[] = "FLEET_PROGRESS_FILE";

struct RankProgress {
  int64_t pulses = 0;       // rises with everything that is progress: steps, evaluation, saving
  int64_t steps = 0;        // that this process has done
  int64_t step = 0;         // of the whole training: those before it resumed are counted too
  int64_t epoch = 0;        // from 0
  int64_t checkpoint = -1;  // the step of the last checkpoint that is on the disk; -1: none
  int64_t step_at_ns = 0;   // when the last step ended, CLOCK_MONOTONIC
  int64_t waited_ns = 0;    // up to then: time in which it waited for other ranks

  bool operator==(const RankProgress&) const = default;
};

// The rank's end. Calls do nothing where there is no such file (no launcher, or one that may not be
// seen). One thread writes.
class ProgressWriter {
 public:
  static ProgressWriter from_env();
  explicit ProgressWriter(const std::string& path);
  ProgressWriter() = default;
  ~ProgressWriter();
  ProgressWriter(ProgressWriter&& other) noexcept;
  ProgressWriter& operator=(ProgressWriter&&) = delete;

  void step_done(int64_t step, int64_t epoch, int64_t waited_ns);
  void saved(int64_t step);
  void pulse();  // something else than a step got on
  // From here on steps say nothing: the rank ends, or does what has none.
  void finish();

 private:
  void publish();
  void* memory_ = nullptr;
  RankProgress now_;
};

// The launcher's end: makes the file, which lives in memory and in no folder, and reads it.
class ProgressReader {
 public:
  ProgressReader();  // kIo
  ~ProgressReader();
  ProgressReader(const ProgressReader&) = delete;

  // Where processes of this user find it for as long as this object lives.
  const std::string& path() const { return path_; }
  // Nothing before the first pulse and after finish(). While a writer stands in the middle of its
  // stores (it waits for a processor, or died there): what was read before.
  std::optional<RankProgress> read();

 private:
  UniqueFd file_;
  void* memory_ = nullptr;
  std::string path_;
  RankProgress seen_;  // the last whole one
};

}  // namespace fleet
