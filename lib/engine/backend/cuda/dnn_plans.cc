#include <exception>
#include <limits>
#include <map>

#include "backend/cuda/autotune_cache.h"
#include "backend/cuda/device.h"
#include "backend/cuda/dnn.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mutex.h"

namespace fleet::cuda::dnn {
namespace {

constexpr size_t kMaxMeasured = 16;
constexpr int kRuns = 3, kTogether = 10;
// An algorithm whose first timed run takes this many times as long as the best one is dropped.
constexpr float kHopeless = 2;
constexpr float kLaunch = 0.05F;  // milliseconds that launching one run may add

// A device's plans. They live as long as the process, like the library's handle.
struct DevicePlans {
  explicit DevicePlans(CudaDevice& device)
      : target(device),
        measured(autotune_cache_file("cudnn", target.name(), cudnnGetVersion()),
                 target.name() + ", cuDNN " + std::to_string(cudnnGetVersion())) {}
  Target target;
  AutotuneCache measured;
  std::map<std::string, std::shared_ptr<const Plan>> plans;
};

DevicePlans& plans_of(CudaDevice& device) {
  static Mutex mutex;
  static auto* const all FLEET_PT_GUARDED_BY(mutex) =
      new std::map<int, std::unique_ptr<DevicePlans>>;
  const MutexLock lock(mutex);
  std::unique_ptr<DevicePlans>& plans = (*all)[device.index()];
  if (!plans) plans = std::make_unique<DevicePlans>(device);
  return *plans;
}

class Timer {
 public:
  Timer() {
    check(cudaEventCreate(&begin_), "cudaEventCreate");
    check(cudaEventCreate(&end_), "cudaEventCreate");
  }
  ~Timer() {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
  }
  void start(cudaStream_t stream) { check(cudaEventRecord(begin_, stream), "cudaEventRecord"); }
  // Milliseconds since the start.
  float stop(cudaStream_t stream) {
    check(cudaEventRecord(end_, stream), "cudaEventRecord");
    check(cudaEventSynchronize(end_), "cudaEventSynchronize");
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
    return milliseconds;
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// Scratch memory for a graph's tensors during measurement.
class Scratch {
 public:
  Scratch(CudaDevice& device, const std::vector<Tensor>& tensors) : device_(device) {
    for (const Tensor& tensor : tensors) {
      if (tensor.is_scalar) {  // any value takes the same time
        bindings_.push_back({tensor.id, &scalar_});
        continue;
      }
      memory_.push_back(device.allocate(tensor.extent() * size_of(tensor.dtype)));
      bindings_.push_back({tensor.id, memory_.back().data()});
    }
    stream_ = device.make_stream("measuring");
  }

  // Milliseconds of the fastest of a few runs; a single run if that is far above `best`.
  float measure(const std::shared_ptr<const Plan>& plan, float best) {
    if (plan->workspace() > workspace_.bytes()) {
      workspace_ = {};
      workspace_ = device_.allocate(plan->workspace());
    }
    const Execution execution(plan, bindings_, workspace_.data());
    const cudnnHandle_t handle = dnn_handle(device_);
    execution.run(handle, *stream_);  // loads the code
    timer_.start(stream_of(*stream_));
    execution.run(handle, *stream_);
    const float once = timer_.stop(stream_of(*stream_));
    if (once > kHopeless * best + kLaunch) return once;
    // Recorded, as a step launches it, to exclude the host's time per run.
    const auto together = device_.record(*stream_, [&] {
      for (int i = 0; i < kTogether; ++i) execution.run(handle, *stream_);
    });
    float fastest = std::numeric_limits<float>::max();
    for (int i = 0; i < kRuns; ++i) {
      timer_.start(stream_of(*stream_));
      together->launch(*stream_);
      fastest = std::min(fastest, timer_.stop(stream_of(*stream_)) / kTogether);
    }
    return fastest;
  }

 private:
  CudaDevice& device_;
  std::vector<Buffer> memory_;
  float scalar_ = 1;
  std::vector<Execution::Binding> bindings_;
  Buffer workspace_;
  std::unique_ptr<Stream> stream_;
  Timer timer_;
};

std::shared_ptr<const Plan> fastest(CudaDevice& device, const Graph& graph,
                                    const std::vector<std::shared_ptr<const Plan>>& plans,
                                    const std::vector<Tensor>& tensors) {
  Scratch scratch(device, tensors);
  std::shared_ptr<const Plan> best;
  float best_time = std::numeric_limits<float>::max();
  std::exception_ptr failure;
  for (const auto& plan : plans) {
    try {
      const float time = scratch.measure(plan, best_time);
      if (time < best_time) best = plan;
      best_time = std::min(best_time, time);
    } catch (const Error& error) {
      // An algorithm that cannot run, or finds no memory, is not chosen.
      if (error.code() != ErrorCode::kUnsupported) failure = std::current_exception();
      spdlog::debug("{} by {}: {}", graph.what(), plan->choice().text(), error.what());
    }
  }
  // Otherwise it would look as if no algorithm existed.
  if (!best && failure) std::rethrow_exception(failure);
  if (best) {
    spdlog::debug("{}: {} of {} algorithms, {:.3f} ms", graph.what(), best->choice().text(),
                  plans.size(), best_time);
  }
  return best;
}

// The stored choice; null if there is none that this library can run.
std::shared_ptr<const Plan> stored_plan(const DevicePlans& known, const std::string& key,
                                        const Graph& graph, const PlanLimits& limits) {
  const auto text = known.measured.find(key);
  if (!text) return nullptr;
  const auto choice = EngineChoice::parse(*text);
  auto plan = choice ? plan_for_choice(graph, known.target, *choice) : nullptr;
  if (plan && plan->workspace() <= limits.workspace) return plan;
  spdlog::warn("{}: the stored algorithm does not run here; measuring again", graph.what());
  return nullptr;
}

// Of several processes, one measures and the others wait for its choice: ranks whose algorithms
// differed would differ in their last bits, and in the memory of their Plans.
std::shared_ptr<const Plan> search(CudaDevice& device, DevicePlans& known, const std::string& key,
                                   const Graph& graph, const PlanLimits& limits,
                                   const std::vector<Tensor>& tensors) {
  if (auto plan = stored_plan(known, key, graph, limits)) return plan;
  const UniqueFd lock = known.measured.lock();
  known.measured.reload();
  if (auto plan = stored_plan(known, key, graph, limits)) return plan;
  const auto plans = candidate_plans(graph, known.target, limits, kMaxMeasured);
  std::shared_ptr<const Plan> plan;
  try {
    plan = fastest(device, graph, plans, tensors);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kNoMemory) throw;
    device.trim();
    return plans.empty() ? nullptr : plans[0];  // not measured, so not stored
  }
  device.trim();  // otherwise the job's memory would be cut from pieces made for measuring
  if (plan) known.measured.add(key, plan->choice().text());
  return plan;
}

}  // namespace

std::shared_ptr<const Plan> find_plan(CudaDevice& device, const std::string& key,
                                      const std::function<Graph()>& make_graph,
                                      const std::vector<Tensor>& tensors) {
  const CudaOptions& options = device.cuda_options();
  PlanLimits limits{.workspace = static_cast<size_t>(options.conv_workspace_size_limit) << 20,
                    .deterministic = device.options().deterministic};
  limits.exact_float32 = tensors.front().dtype == DType::kFloat32 && !options.tensor_op_math;
  const std::string full_key =
      key + " within " + std::to_string(options.conv_workspace_size_limit) + " MiB" +
      (limits.deterministic ? " deterministic" : "") + (limits.exact_float32 ? " exact" : "");
  DevicePlans& known = plans_of(device);
  const auto found = known.plans.find(full_key);
  if (found != known.plans.end()) return found->second;
  const Graph graph = make_graph();
  std::shared_ptr<const Plan> plan;
  if (options.cudnn_exhaustive_search) {
    plan = search(device, known, full_key, graph, limits, tensors);
  } else {
    const auto plans = candidate_plans(graph, known.target, limits, 1);
    if (!plans.empty()) plan = plans[0];
  }
  known.plans[full_key] = plan;
  return plan;
}

}  // namespace fleet::cuda::dnn
