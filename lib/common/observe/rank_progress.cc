#include "observe/rank_progress.h"

#include <atomic>
#include <chrono>

#include "base/env.h"

namespace fleet {
namespace {

// "fleetP5": a file with other content is left alone.
constexpr uint64_t kProgressMagic = 0x0035507465656c66;

// Shared with another process: only lock-free atomics. `turn` is odd while the writer is storing.
struct Shared {
  std::atomic<uint64_t> magic;
  std::atomic<uint64_t> turn;
  AtomicWords<RankProgress> progress;
  std::atomic<uint64_t> trace;  // the number of the request, and a file of the launcher
};
static_assert(sizeof(Shared) <= 4096);

}  // namespace

ProgressWriter ProgressWriter::from_env() {
  const auto path = get_env(kEnvProgressFile);
  return path ? ProgressWriter(*path) : ProgressWriter();
}

ProgressWriter::ProgressWriter(const std::string& path)
    : memory_(SharedMemory::open(path, sizeof(Shared), kProgressMagic)),
      folder_(path.substr(0, path.rfind('/') + 1)) {}

void ProgressWriter::publish() {
  if (!memory_) return;
  constexpr auto relaxed = std::memory_order_relaxed;
  auto& to = memory_.as<Shared>();
  const uint64_t turn = to.turn.load(relaxed);
  to.turn.store(turn + 1, relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  to.progress.store(now_);
  to.turn.store(turn + 2, std::memory_order_release);
}

void ProgressWriter::in_pipeline(int64_t stage, int64_t stages) {
  now_.stage = stage;
  now_.stages = stages;
}

void ProgressWriter::planned(int64_t target, int64_t data_threads) {
  now_.target = target;
  now_.data_threads = data_threads;
}

void ProgressWriter::fetched(double loss, double accuracy) {
  ++now_.losses;
  now_.loss = loss;
  now_.accuracy = accuracy;
}

void ProgressWriter::evaluated(double accuracy) { now_.evaluation_accuracy = accuracy; }

void ProgressWriter::step_done(int64_t step, int64_t epoch, const StepTotals& totals) {
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
  ++now_.ticks;
  now_.checkpoint = step;
  publish();
}

void ProgressWriter::tick() {
  ++now_.ticks;
  publish();
}

void ProgressWriter::finish() {
  now_.ticks = 0;
  publish();
}

uint64_t ProgressWriter::trace_request() const {
  return memory_ ? memory_.as<Shared>().trace.load(std::memory_order_relaxed) : 0;
}

std::string ProgressWriter::trace_path(uint64_t request) const {
  return folder_ + std::to_string(request & 0xffffffff);
}

ProgressReader::ProgressReader()
    : memory_(SharedMemory::create("progress", sizeof(Shared), kProgressMagic)) {
  memory_.as<Shared>().progress.store(RankProgress());
}

void ProgressReader::request_trace(int file) {
  std::atomic<uint64_t>& word = memory_.as<Shared>().trace;
  word = ((word >> 32) + 1) << 32 | static_cast<uint32_t>(file);
}

std::optional<RankProgress> ProgressReader::read() {
  constexpr auto relaxed = std::memory_order_relaxed;
  const auto& from = memory_.as<Shared>();
  for (int i = 0; i < 100; ++i) {
    const uint64_t turn = from.turn.load(std::memory_order_acquire);
    const RankProgress seen = from.progress.load();
    std::atomic_thread_fence(std::memory_order_acquire);
    if (turn % 2 != 0 || from.turn.load(relaxed) != turn) continue;
    seen_ = seen;
    break;
  }
  if (seen_.ticks == 0 && seen_.steps == 0) return std::nullopt;
  return seen_;
}

}  // namespace fleet
