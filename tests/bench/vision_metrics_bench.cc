// All metrics of a classifier, from the logits of its samples, on ranks that are threads.
// Links: train
//
// bench_vision_metrics [SAMPLES [CLASSES [RANKS [FILE]]]]: 50,000 x 1,000 on 2 ranks by default.
// FILE gets the values of the metrics, and the logits and labels of the first samples, as JSON.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/json.h"
#include "base/process_memory.h"
#include "models/metric_collectors.h"
#include "tests/engine/train/rank_threads.h"
#include "train/evaluation.h"

namespace fleet {
namespace {

constexpr int64_t kBatchRows = 250, kMostInFile = 2000;

uint64_t mixed(uint64_t value) {
  uint64_t z = value + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// The logits of a network that is right in about three of four cases, by the sample's number.
int64_t make_row(int64_t sample, std::span<float> row) {
  const uint64_t key = mixed(static_cast<uint64_t>(sample));
  for (size_t c = 0; c < row.size(); c += 4) {
    uint64_t bits = mixed(key + c);
    for (size_t i = c; i < std::min(c + 4, row.size()); ++i, bits >>= 16) {
      row[i] = static_cast<float>(static_cast<double>(bits & 0xFFFF) / 16384 - 2);
    }
  }
  const auto label = static_cast<int64_t>(mixed(key) % row.size());
  row[label] += static_cast<float>(mixed(key + 7) % 1000) / 125;
  return label;
}

// Seconds.
struct Spent {
  double adding = 0, finishing = 0;
  double computing = 0;  // of a core, in both
};

double core_seconds() {
  std::timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Stopwatch {
 public:
  void stop(double* seconds, double* computing) const {
    *seconds += monotonic_seconds() - begun_;
    *computing += core_seconds() - cores_;
  }

 private:
  const double begun_ = monotonic_seconds(), cores_ = core_seconds();
};

void write_values(const std::string& path, const std::map<std::string, double>& values,
                  int64_t samples, int64_t classes) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = value;
  std::ofstream(path) << json.dump() << "\n";
  std::ofstream rows(path + ".rows", std::ios::binary);
  std::vector<float> row(static_cast<size_t>(classes));
  for (int64_t n = 0; n < std::min(samples, kMostInFile); ++n) {
    const auto label = static_cast<float>(make_row(n, row));
    rows.write(reinterpret_cast<const char*>(&label), sizeof label);
    rows.write(reinterpret_cast<const char*>(row.data()), static_cast<int64_t>(4 * row.size()));
  }
}

// Every metric of the registry that takes classes, and the report of evaluate_classes.
std::vector<std::string> all_metrics(int64_t classes) {
  std::vector<std::string> names;
  for (const std::string& name : named_metric_registry().names()) {
    const NamedMetric& metric = named_metric_registry().get(name);
    if (metric.takes(MetricInput::kClasses) && (!metric.binary || classes == 2)) {
      names.push_back(name);
    }
  }
  return names;
}

Spent run_rank(RankThread& self, int64_t samples, int64_t classes,
               std::map<std::string, double>* values) {
  ClassMetrics collector(classes, all_metrics(classes), true);
  RankCoordinator control(self.communicator);
  std::vector<float> logits(static_cast<size_t>(kBatchRows * classes));
  std::vector<int64_t> labels(kBatchRows), numbers(kBatchRows);
  std::vector<float> weights(kBatchRows);
  Spent spent;
  for (int64_t first = self.rank; first < samples; first += kBatchRows * self.world) {
    for (int64_t k = 0; k < kBatchRows; ++k) {
      const int64_t sample = first + k * self.world;
      weights[k] = sample < samples ? 1 : 0;
      numbers[k] = std::min(sample, samples - 1);
      labels[k] = make_row(numbers[k], std::span(logits).subspan(k * classes, classes));
    }
    const Stopwatch watch;
    collector.add({.size = kBatchRows,
                   .output = [&](const std::string&) { return std::span<const float>(logits); },
                   .column =
                       [&](const std::string& name) {
                         return name == "label" ? std::as_bytes(std::span(labels))
                                                : std::as_bytes(std::span(weights));
                       },
                   .samples = numbers});
    watch.stop(&spent.adding, &spent.computing);
  }
  control.barrier();
  const Stopwatch watch;
  collector.finish(*make_rank_exchange(control));
  *values = collector.metrics();
  const std::string report = collector.report().dump();
  watch.stop(&spent.finishing, &spent.computing);
  return spent;
}

int run(int argc, char** argv) {
  const int64_t samples = argc > 1 ? std::atoll(argv[1]) : 50'000;
  const int64_t classes = argc > 2 ? std::atoll(argv[2]) : 1000;
  const int world = argc > 3 ? std::atoi(argv[3]) : 2;
  std::vector<Spent> spent(world);
  std::vector<std::map<std::string, double>> values(world);
  for (const RankEnd& end : run_ranks(world, [&](RankThread& self) {
         spent[self.rank] = run_rank(self, samples, classes, &values[self.rank]);
       })) {
    if (!end.message.empty()) throw Error(ErrorCode::kInternal, end.message, "a rank");
  }
  double adding = 0, finishing = 0, computing = 0;
  for (const Spent& one : spent) {
    adding = std::max(adding, one.adding);
    finishing = std::max(finishing, one.finishing);
    computing = std::max(computing, one.computing);
  }
  for (const auto& [name, value] : values[0]) std::printf("  %s %.9g\n", name.c_str(), value);
  std::printf(
      "vision_metrics: %lld x %lld, %d ranks, gcc %s: %.2f s (rows %.2f, end %.2f; %.2f s of a "
      "core on the slowest rank)\n",
      static_cast<long long>(samples), static_cast<long long>(classes), world, __VERSION__,
      adding + finishing, adding, finishing, computing);
  std::printf("vision_metrics: %.0f MiB of memory in all\n",
              static_cast<double>(process_memory().peak) / (1 << 20));
  if (argc > 4) write_values(argv[4], values[0], samples, classes);
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  try {
    return fleet::run(argc, argv);
  } catch (const fleet::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return fleet::exit_code_for(error.code());
  }
}
