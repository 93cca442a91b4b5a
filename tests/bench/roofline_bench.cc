// Computation and traffic of a ResNet50 training step, by kind of operation, against its time:
// each operation of the Plan reads its inputs and writes its outputs once, convolutions and the
// classifier multiply and add; none can be faster than its bytes at this machine's bandwidth or its
// multiply-adds at this machine's rate, both measured here through the same backend.
//
//   bench_roofline [--device cpu|cuda] [--batch N] [--float32] [--rounds N] [--pointwise]
//
// Mixed precision unless --float32 is given or the device has no low type. Kinds may go below their
// bytes' time where a cache still holds what the operation before wrote. --pointwise: the
// convolutions of 1 x 1 in kernels of our own instead (pointwise_layers.h).
// Links: train backend_cpu
// Runs on GPUs
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include "cost/rates.h"
#include "exec/backend.h"
#include "tests/bench/pointwise_layers.h"
#include "tests/bench/resnet50_step.h"
#include "train/measure_rates.h"

namespace fleet::bench {
namespace {

struct Options {
  std::string device = "auto";
  int64_t batch = 0;  // 0: 16 on the CPU, 128 elsewhere
  bool float32 = false, pointwise = false;
  int rounds = 5;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (!std::strcmp(argv[i], "--device") && more) {
      options.device = argv[++i];
    } else if (!std::strcmp(argv[i], "--batch") && more) {
      options.batch = std::max(1, std::atoi(argv[++i]));
    } else if (!std::strcmp(argv[i], "--rounds") && more) {
      options.rounds = std::max(1, std::atoi(argv[++i]));
    } else if (!std::strcmp(argv[i], "--float32")) {
      options.float32 = true;
    } else if (!std::strcmp(argv[i], "--pointwise")) {
      options.pointwise = true;
    } else {
      throw Error(ErrorCode::kUsage, "unknown option", argv[i],
                  "there are --device D, --batch N, --float32, --rounds N and --pointwise");
    }
  }
  return options;
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Row {
  int calls = 0;
  double operations = 0, bytes = 0;
  double computing = 0, moving = 0;  // seconds at least, by which of the two bounds an operation
  double seconds = 0;
  double bound() const { return computing + moving; }
};

void print_row(const std::string& name, const Row& row) {
  std::printf("%-30s %5d %10.1f %9.1f %9.2f %9.2f  %5.2f  %s\n", name.c_str(), row.calls,
              row.operations * 1e-9, row.bytes * 1e-6, 1e3 * row.bound(), 1e3 * row.seconds,
              row.seconds > 0 ? row.bound() / row.seconds : 0,
              row.computing > row.moving ? "computing" : "memory");
}

int run(const Options& options) {
  const DeviceChoice choice = choose_device(options.device, 0);
  Device& device = *choice.device;
  if (!choice.note.empty()) std::printf("%s\n", choice.note.c_str());
  std::string why;
  std::vector<DType> low = low_precision_types(device.backend(), &why);
  if (low.empty() && !options.float32) std::printf("float32: %s\n", why.c_str());
  if (low.empty() || options.float32) low = {DType::kFloat32};
  const int64_t batch = options.batch ? options.batch : device.backend() == "cpu" ? 16 : 128;

  const double bandwidth = measure_bandwidth(device, int64_t{64} << 20);
  const double rate = measure_products(device, low[0], device.backend() == "cpu" ? 2048 : 8192);
  std::printf("%s: %.1f GB/s of memory, %.1f GFLOP/s of %s products; %lld images a step\n",
              device.backend().c_str(), bandwidth * 1e-9, rate * 1e-9, name_of(low[0]),
              static_cast<long long>(batch));

  if (options.pointwise) {
    return measure_pointwise(device, low[0], batch, bandwidth, rate) ? 0 : 1;
  }
  ResNet50Step step(device, batch, low[0] != DType::kFloat32);
  for (int i = 0; i < 3; ++i) step.run();
  std::vector<double> times;
  for (int i = 0; i < options.rounds; ++i) {
    const double start = seconds_now();
    step.run();
    times.push_back(seconds_now() - start);
  }
  std::sort(times.begin(), times.end());
  const double whole = times[times.size() / 2];
  step.executor().set_profiling(true);
  for (int i = 0; i < options.rounds; ++i) step.run();

  const Plan& plan = step.executor().plan();
  const std::vector<double> seconds = step.executor().profiled_seconds();
  std::map<std::string, Row> rows;
  Row total;
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    const Predicate& when = plan.program.sections()[plan.ops[i].op.section].when;
    if (!when.holds({.step = 3})) continue;
    const OpCost cost = cost_of(plan, plan.ops[i]);
    const double computing = cost.operations / rate, moving = cost.bytes / bandwidth;
    for (Row* row : {&rows[plan.ops[i].op.type()], &total}) {
      ++row->calls;
      row->operations += cost.operations;
      row->bytes += cost.bytes;
      (computing > moving ? row->computing : row->moving) += std::max(computing, moving);
      row->seconds += seconds[i];
    }
  }
  std::vector<std::pair<std::string, Row>> order(rows.begin(), rows.end());
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second.seconds > b.second.seconds; });
  std::printf("%-30s %5s %10s %9s %9s %9s  %5s  %s\n", "operation", "calls", "GFLOP", "MB",
              "bound ms", "meas. ms", "effic", "bound by");
  for (const auto& [name, row] : order) print_row(name, row);
  print_row("total, one after another", total);
  const double ours = static_cast<double>(batch) / whole;
  const double least = static_cast<double>(batch) / total.bound();
  std::printf("roofline: ratio %.3f (ours %.2f images/s, roofline %.2f images/s)\n", ours / least,
              ours, least);
  return 0;
}

}  // namespace
}  // namespace fleet::bench

int main(int argc, char** argv) {
  try {
    return fleet::bench::run(fleet::bench::parse(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_roofline: %s\n", error.what());
    return 1;
  }
}
