#include "train/measure_rates.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cmath>
#include <ctime>
#include <fstream>
#include <future>
#include <map>

#include "base/clock.h"
#include "base/counted.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/text.h"
#include "base/thread.h"
#include "comm/factory.h"
#include "exec/backend.h"
#include "exec/executor.h"
#include "tensor/host.h"
#include "train/job_facts.h"
#include "train/job_task.h"
#include "train/session.h"

namespace fleet {
namespace {

// Networks whose operations are measured: together they have most kinds of operations in small
// and large sizes.
struct Sample {
  const char* model;
  int batch, image;
  const char* optimizer;
  const char* more = "";  // more of the section "model"
};
constexpr Sample kSamples[] = {
    {"resnet50", 2, 224, "momentum"},
    {"resnet18", 12, 224, "momentum"},
    {"resnet50", 6, 96, "sgd"},
    {"resnet20", 48, 32, "momentum"},
    {"mobilenet_v2", 8, 128, "momentum"},
    {"mobilenet_v3_small", 4, 160, "adam"},
    {"googlenet", 4, 96, "momentum"},
    {"vgg11", 2, 64, "sgd"},
    {"vit_b_32", 2, 224, "adamw"},
    {"densenet121", 1, 64, "momentum"},  // many joins and cuts
    {"lenet", 64, 28, "momentum"},
    {"mlp", 32, 28, "adam", ", \"hidden\": [1024, 1024, 256]"},
    {"mlp", 256, 28, "sgd", ", \"hidden\": [512, 128]"},
    {"mlp", 32, 32, "adam", ", \"hidden\": [2048, 2048]"},  // more than caches hold
};
// Timed steps of each. The median counts: the fastest would be one in which the other ranks
// happened to leave this one the memory.
constexpr int kMinRounds = 3, kMaxRounds = 30;
constexpr double kRoundsSeconds = 0.15;
constexpr int kMaxRanks = 16;

Job sample_job(const Sample& sample, bool low) {
  const bool grey = std::string(sample.model) == "lenet" || std::string(sample.model) == "mlp";
  const std::string size = std::to_string(sample.image);
  const std::string json =
      "{\"model\": {\"name\": \"" + std::string(sample.model) + "\"" + sample.more +
      "}, \"data\": {\"source\": \"synthetic\", \"batch_size\": " + std::to_string(sample.batch) +
      ", \"image\": {\"channels\": " + (grey ? "1" : "3") + ", \"height\": " + size +
      ", \"width\": " + size + "}}, \"optimizer\": {\"name\": \"" + sample.optimizer +
      "\"}, \"learning_rate\": {\"name\": \"constant\", \"base\": 1e-6}, \"strategy\": {\"amp\": " +
      (low ? "true" : "false") + "}, \"train\": {\"on_nan\": \"continue\"}}";
  return make_job(ConfigTree::from_json(json, "a sample of the benchmark"));
}

// Values that no kernel treats in a special way.
void feed_values(Executor& executor) {
  std::vector<std::byte> bytes;
  for (VarId id = 0; id < executor.program().var_count(); ++id) {
    const Var& var = executor.program().var(id);
    if (var.kind != VarKind::kFeed || !executor.plan().vars[id].used) continue;
    const auto count = static_cast<size_t>(var.shape.elements());
    bytes.assign(executor.plan().vars[id].bytes, std::byte{0});
    if (var.dtype == DType::kFloat32 && var.shape.rank() > 1) {
      auto* values = reinterpret_cast<float*>(bytes.data());
      for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i * 7919 % 1000) / 500 - 1;
    }
    executor.feed(id, ConstHostBytes(bytes));
    executor.synchronize();
  }
}

std::unique_ptr<Executor> executor_of(Device& device, Program program,
                                      const std::vector<VarId>& keep) {
  return std::make_unique<Executor>(
      plan_program(std::move(program), keep, {.backend = device.backend(), .device = &device}),
      device, nullptr);
}

std::unique_ptr<Executor> executor_of(Device& device, const Job& job) {
  BuiltProgram built =
      build_program(job, {.columns = expected_columns(job), .backend = device.backend()});
  return executor_of(device, std::move(built.program), built.keep);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

using Samples = std::vector<OpSample>;
// Waits for the other ranks; whether any of them passed true.
using Agree = std::function<bool(bool)>;

// Seconds of each operation of a training step of this network. The ranks begin each step together,
// as in a job.
void measure_network(const Sample& sample, bool low, Device& device, const Agree& agree,
                     Samples* samples) {
  const auto owner = executor_of(device, sample_job(sample, low));
  Executor& executor = *owner;
  executor.initialize(1);
  feed_values(executor);
  const StepInfo step{.step = 1};
  executor.run(step);
  executor.synchronize();
  std::vector<std::vector<double>> rounds(executor.plan().ops.size());
  const double start = monotonic_seconds();
  for (int i = 0; i < kMaxRounds; ++i) {
    if (!agree(i < kMinRounds || monotonic_seconds() - start <= kRoundsSeconds)) break;
    executor.set_profiling(true);
    executor.run(step);
    executor.synchronize();
    const std::vector<double> seconds = executor.profiled_seconds();
    for (size_t op = 0; op < rounds.size(); ++op) rounds[op].push_back(seconds[op]);
  }
  const Plan& plan = executor.plan();
  for (size_t i = 0; i < plan.ops.size(); ++i) {
    if (!plan.program.sections()[plan.ops[i].op.section].when.holds(step)) continue;
    const OpCost cost = cost_of(plan, plan.ops[i]);
    samples->push_back({cost.key, cost.layout, cost.operations, cost.bytes, median(rounds[i])});
  }
}

double resident_bytes() { return static_cast<double>(process_memory().resident); }

// The memory of the libraries and of prepared operations, while nothing else runs here.
void measure_memory(bool low, Device& device, MachineRates* rates) {
  if (device.runs_beside_host()) return;
  Samples unused;
  const double before = resident_bytes();
  measure_network(
      {"lenet", 16, 28, "momentum"}, low, device, [](bool more) { return more; }, &unused);
  const double after = resident_bytes();
  rates->library_bytes = std::max(after - before, 0.0);
  const auto executor = executor_of(device, sample_job({"resnet18", 2, 64, "momentum"}, low));
  executor->run({.step = 1});
  executor->synchronize();
  const Plan& plan = executor->plan();
  const double more = resident_bytes() - after - static_cast<double>(plan.memory().total());
  rates->kernel_bytes = std::max(more, 0.0) / static_cast<double>(plan.ops.size());
}

// Seconds of one run of a Program: the best of several.
double time_program(Device& device, const Program& program, VarId result) {
  const auto executor = executor_of(device, program, {result});
  double best = INFINITY;
  for (int i = 0; i < 6; ++i) {
    const double start = monotonic_seconds();
    executor->run({});
    executor->synchronize();
    if (i > 0) best = std::min(best, monotonic_seconds() - start);
  }
  return best;
}

// The time of an operation that computes almost nothing.
double measure_overhead(Device& device) {
  constexpr int kOperations = 200;
  Program program;
  const SectionId section = program.add_section("main", {});
  VarId x = program.feed("x", DType::kFloat32, {16});
  for (int i = 0; i < kOperations; ++i) {
    x = program.emit(section, "scale", {x}, {{"scale", 1.0}})[0];
  }
  return time_program(device, program, x) / kOperations;
}

std::unique_ptr<Device> device_of(const MeasureOptions& options) {
  return choose_device(options.device, 0).device;
}

// Runs `body(i)` on `count` threads, each on its own part of the cores.
void on_all(int count, int threads, const std::function<void(int)>& body) {
  const std::vector<int> cores = available_cores();
  const auto run = [&](int i) {
    const auto first = static_cast<size_t>(i) * static_cast<size_t>(threads);
    if (count > 1 && first + static_cast<size_t>(threads) <= cores.size()) {
      const auto begin = cores.begin() + static_cast<std::ptrdiff_t>(first);
      pin_to_cores({begin, begin + threads});
    }
    body(i);
  };
  // The bodies wait for each other: none may begin if a thread is missing.
  std::promise<bool> complete;
  const std::shared_future<bool> begins = complete.get_future().share();
  std::vector<Thread> all;
  try {
    for (int i = 0; i < count; ++i) {
      all.emplace_back("rate" + std::to_string(i), [&run, begins, i] {
        if (begins.get()) run(i);
      });
    }
  } catch (...) {
    complete.set_value(false);
    throw;
  }
  complete.set_value(true);
  for (Thread& thread : all) thread.join();
}

// Lets threads in the places of ranks begin together; the first of them says whether there is more.
class Ranks {
 public:
  explicit Ranks(int count) : barrier_(count) {}
  // Collective: waits for the others.
  bool agree(int rank, int64_t* turn, bool more) {
    // Two of them: the next one is set while the slowest thread still reads this one.
    std::atomic<bool>& wish = more_[static_cast<size_t>((*turn)++ % 2)];
    if (rank == 0) wish = more;
    barrier_.arrive_and_wait();
    return wish;
  }
  // The others continue without it, at most kMaxRounds a network if it was the first.
  void leave() { barrier_.arrive_and_drop(); }

 private:
  std::barrier<> barrier_;
  std::array<std::atomic<bool>, 2> more_ = {};
};

// All that one rank measures.
void measure_rank(const MeasureOptions& options, Device& device, const Agree& agree,
                  MachineRates* rates) {
  agree(true);
  const int64_t size = device.runs_beside_host() ? 8192 : 1024;
  rates->bytes_per_second = measure_bandwidth(device, int64_t{16} << 20);
  rates->op_seconds = measure_overhead(device);
  rates->peak["float32"] = measure_products(device, DType::kFloat32, size);
  if (options.low) {
    std::string why;
    for (const DType low : low_precision_types(device.backend(), &why)) {
      rates->peak[name_of(low)] = measure_products(device, low, size);
    }
  }
  for (const Sample& sample : kSamples) {
    measure_network(sample, options.low, device, agree, &rates->samples);
  }
}

// The first thread's rates, while the others do the same work at the same time.
void measure_operations(const MeasureOptions& options, int count, MachineRates* rates) {
  Ranks ranks(count);
  on_all(count, options.threads, [&](int i) {
    const std::shared_ptr<void> end(nullptr, [&ranks](void*) { ranks.leave(); });
    const std::unique_ptr<Device> device = device_of(options);
    MachineRates other;
    int64_t turn = 0;
    measure_rank(
        options, *device, [&](bool more) { return ranks.agree(i, &turn, more); },
        i == 0 ? rates : &other);
  });
}

// Sums over shared memory, among threads in the places of the ranks.
LinkRates measure_shared_memory(const MeasureOptions& options, int ranks) {
  LinkRates link{.transport = "shm", .ranks = ranks, .nodes = 1, .all_reduce = {}};
  const std::shared_ptr<Store> store = make_memory_store();
  on_all(ranks, options.threads, [&](int i) {
    const auto communicator =
        make_communicator({.rank = i, .size = ranks, .store = store, .backend = "shm"});
    HostStream stream("link");  // with a thread, as in a step
    constexpr size_t kMost = size_t{32} << 20;
    constexpr int kRounds = 7;
    const Buffer buffer = communicator->allocate(kMost);
    for (size_t bytes = 1024; bytes <= kMost; bytes *= bytes == kMost / 2 ? 2 : 4) {
      std::vector<double> seconds;
      const View view{buffer.data(), bytes / sizeof(float), DType::kFloat32};
      const double used = processor_seconds();
      for (int round = 0; round < kRounds; ++round) {
        const double start = monotonic_seconds();
        communicator->all_reduce(view, view, ReduceOp::kSum, stream);
        stream.synchronize();
        seconds.push_back(monotonic_seconds() - start);
      }
      if (i != 0) continue;
      const double took = median(seconds);
      const double busy = (processor_seconds() - used) / kRounds / ranks;
      link.all_reduce.push_back({double(bytes), took, std::min(busy, took)});
    }
  });
  return link;
}

std::string processor_name() {
  std::ifstream lines("/proc/cpuinfo");
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("model name")) {
      return std::string(trim(std::string_view(line).substr(line.find(':') + 1)));
    }
  }
  return "processor";
}

std::string machine_text(const MeasureOptions& options) {
  if (!backend_def(options.device).uses_host_cores) return options.device;
  return processor_name() + ", " + counted(options.threads, "core") + " a rank, " +
         counted(options.ranks_here, "rank");
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[40];
  std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &utc);
  return text;
}

MachineRates measure_machine(const MeasureOptions& options) {
  const Silence silence;  // the sample networks' passes log nothing
  const int cores = static_cast<int>(available_cores().size());
  const int ranks = std::clamp(options.ranks_here, 1, kMaxRanks);
  MachineRates rates{.device = machine_text(options), .origin = "measured " + now_text()};
  // More ranks than cores would only take turns.
  const int at_once = std::clamp(cores / std::max(options.threads, 1), 1, ranks);
  measure_memory(options.low, *device_of(options), &rates);
  measure_operations(options, at_once, &rates);
  if (ranks > 1) rates.links.push_back(measure_shared_memory(options, ranks));
  return rates;
}

}  // namespace

double measure_bandwidth(Device& device, int64_t count) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", DType::kFloat32, {count});
  const VarId y = program.emit(section, "scale", {x}, {{"scale", 2.0}})[0];
  return 2.0 * sizeof(float) * static_cast<double>(count) / time_program(device, program, y);
}

double measure_products(Device& device, DType dtype, int64_t size) {
  Program program;
  const SectionId section = program.add_section("main", {});
  const VarId x = program.feed("x", dtype, {size, size});
  const VarId y = program.feed("y", dtype, {size, size});
  const VarId z = program.emit(section, "matmul", {x, y})[0];
  return 2.0 * std::pow(static_cast<double>(size), 3) / time_program(device, program, z);
}

std::string rates_file_of(const MeasureOptions& options) {
  return rates_file("rates-" + machine_text(options) + (options.low ? "-low" : ""));
}

MachineRates measured_rates(const MeasureOptions& options) {
  const std::string path = rates_file_of(options);
  if (!options.again) {
    if (std::optional<MachineRates> known = read_rates(path)) return *known;
  }
  spdlog::info(
      "measuring this machine's products, operations and memory with {} thread{} a rank, which may "
      "take a minute; {}",
      options.threads, options.threads == 1 ? "" : "s",
      path.empty() ? "there is no cache folder to keep the rates"
                   : "the rates are kept in " + path);
  MachineRates rates = measure_machine(options);
  write_rates(rates, path);
  return rates;
}

}  // namespace fleet
