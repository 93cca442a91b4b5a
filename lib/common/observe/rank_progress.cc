#include "observe/rank_progress.h"

#include <chrono>

#include "base/env.h"
#include "observe/progress_layout.h"

namespace fleet {

ProgressWriter ProgressWriter::from_env() {
  const auto path = get_env(kEnvProgressFile);
  return path ? ProgressWriter(*path) : ProgressWriter();
}

ProgressWriter::ProgressWriter(const std::string& path)
    : memory_(SharedMemory::open(path, sizeof(ProgressLayout), kProgressMagic)),
      folder_(path.substr(0, path.rfind('/') + 1)) {}

void ProgressWriter::publish() {
  if (memory_) memory_.as<ProgressLayout>().progress.publish(now_);
}

void ProgressWriter::in_pipeline(int64_t stage, int64_t stages) {
  const MutexLock lock(mutex_);
  now_.stage = stage;
  now_.stages = stages;
}

void ProgressWriter::planned(int64_t target, int64_t data_threads) {
  const MutexLock lock(mutex_);
  now_.target = target;
  now_.data_threads = data_threads;
}

void ProgressWriter::fetched(double loss, double accuracy) {
  const MutexLock lock(mutex_);
  ++now_.losses;
  now_.loss = loss;
  now_.accuracy = accuracy;
}

void ProgressWriter::evaluated(double accuracy) {
  const MutexLock lock(mutex_);
  now_.evaluation_accuracy = accuracy;
}

void ProgressWriter::took_place(int64_t repeated_samples, int64_t lost_samples) {
  const MutexLock lock(mutex_);
  now_.repeated_samples = repeated_samples;
  now_.lost_samples = lost_samples;
}

void ProgressWriter::step_done(int64_t step, int64_t epoch, const StepTotals& totals) {
  const MutexLock lock(mutex_);
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  ++now_.ticks;
  ++now_.steps;
  now_.step = step;
  now_.epoch = epoch;
  now_.step_at_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  if (now_.steps == 1) now_.first_step_at_ns = now_.step_at_ns;
  now_.totals = totals;
  publish();
}

void ProgressWriter::saved(int64_t step) {
  const MutexLock lock(mutex_);
  ++now_.ticks;
  now_.checkpoint = step;
  publish();
}

void ProgressWriter::tick() {
  const MutexLock lock(mutex_);
  ++now_.ticks;
  publish();
}

void ProgressWriter::set_replaceable(bool replaceable) {
  const MutexLock lock(mutex_);
  now_.replaceable = replaceable ? 1 : 0;
  publish();
}

void ProgressWriter::finish() {
  const MutexLock lock(mutex_);
  now_.ticks = 0;
  publish();
}

uint64_t ProgressWriter::trace_request() const {
  return memory_ ? memory_.as<ProgressLayout>().trace.load(std::memory_order_relaxed) : 0;
}

std::string ProgressWriter::trace_path(uint64_t request) const {
  return folder_ + std::to_string(request & 0xffffffff);
}

ProgressReader::ProgressReader()
    : memory_(SharedMemory::create("progress", sizeof(ProgressLayout), kProgressMagic)) {
  auto& memory = memory_.as<ProgressLayout>();
  memory.progress.words.store(RankProgress());
  memory.server.words.store(ServerProgress());
  memory.use.words.store(ServerUse());
}

void ProgressReader::request_trace(int file) {
  std::atomic<uint64_t>& word = memory_.as<ProgressLayout>().trace;
  word = ((word >> 32) + 1) << 32 | static_cast<uint32_t>(file);
}

std::optional<RankProgress> ProgressReader::read() {
  memory_.as<ProgressLayout>().progress.read(&seen_);
  if (seen_.ticks == 0 && seen_.steps == 0) return std::nullopt;
  return seen_;
}

std::optional<ServerProgress> ProgressReader::read_server() {
  memory_.as<ProgressLayout>().server.read(&server_);
  return server_.at_ns > 0 ? std::optional(server_) : std::nullopt;
}

std::optional<ServerUse> ProgressReader::read_use() {
  memory_.as<ProgressLayout>().use.read(&use_);
  return use_.updates > 0 ? std::optional(use_) : std::nullopt;
}

bool ProgressReader::replaceable() {
  read();
  return seen_.replaceable != 0;
}

}  // namespace fleet
