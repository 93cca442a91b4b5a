#include "train/job_facts.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>

#include "base/clock.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "train/job_data.h"
#include "train/job_task.h"

namespace fleet {
namespace {

constexpr double kMeasuredSeconds = 0.3;
constexpr int64_t kMaxBatches = 50;

// A number of bytes in a file of one line; 0 for "max".
size_t limit_in(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  long long bytes = 0;  // NOLINT(runtime/int): type of parse_int()
  if (!std::getline(file, text) || !parse_int(trim(text), &bytes) || bytes < 0) return 0;
  return static_cast<size_t>(bytes);
}

}  // namespace

size_t available_host_memory() {
  size_t available = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    size_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") available = kibibytes * 1024;
  }
  const size_t limit = limit_in("/sys/fs/cgroup/memory.max");
  const size_t used = limit_in("/sys/fs/cgroup/memory.current");
  if (limit > used && (available == 0 || limit - used < available)) available = limit - used;
  return available;
}

int threads_of_rank(int ranks_here) {
  if (const auto given = openmp_threads()) return *given;
  return std::max(1, static_cast<int>(available_cores().size()) / std::max(ranks_here, 1));
}

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::optional<InputCost> measure_input(const Job& job, Device& device,
                                       const ProgramOptions& options) {
  try {
    const int64_t before = process_memory().resident;
    JobData data(job, device, data_part(job, options));
    data::InputPipeline& train = data.train();
    train.start_epoch(0);
    const double began = monotonic_seconds(), used = processor_seconds();
    const int64_t ahead = train.stats().capacity + 1;
    for (int64_t taken = 0; taken < kMaxBatches; ++taken) {
      if (taken > ahead && monotonic_seconds() - began > kMeasuredSeconds) break;
      if (!train.next()) break;
    }
    train.stop();
    const int64_t made = std::max<int64_t>(train.stats().samples, 1);
    const int64_t now = process_memory().resident;
    return InputCost{.bytes = static_cast<size_t>(std::max<int64_t>(now - before, 0)),
                     .seconds = (processor_seconds() - used) / static_cast<double>(made) *
                                static_cast<double>(train.batch_size()),
                     .columns = columns_of(train),
                     .samples = train.samples()};
  } catch (const Error& error) {
    spdlog::debug("the data cannot be opened here: {}", error.what());
    return std::nullopt;
  }
}

std::optional<int64_t> training_samples(const Job& job, Device& device,
                                        const ProgramOptions& options) {
  try {
    return JobData(job, device, data_part(job, options)).train().samples();
  } catch (const Error& error) {
    spdlog::debug("the data cannot be opened here: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace fleet
