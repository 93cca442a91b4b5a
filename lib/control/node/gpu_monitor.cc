#include "node/gpu_monitor.h"

#include <dlfcn.h>

#include <utility>

#include "base/env.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/text.h"
#include "base/thread.h"
#include "diagnosis/gpu_throttling.h"

namespace fleet {
namespace {

// Copied from nvml.h, because the launcher is built without it; the ABI is stable.
constexpr int kSuccess = 0, kClockSm = 1, kTemperatureGpu = 0;
using Wide = unsigned long long;  // NOLINT(runtime/int): NVML's type
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  Wide total, free, used;
};

class Nvml {
 public:
  explicit Nvml(const std::string& library)
      : handle_(::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
    ready_ = handle_ && call("nvmlInit_v2");
  }
  ~Nvml() {
    if (ready_) call("nvmlShutdown");
  }
  Nvml(const Nvml&) = delete;
  bool ready() const { return ready_; }

  // nullptr if NVML does not know it.
  void* find(const std::string& name) const {
    void* gpu = nullptr;
    long long index = 0;
    const bool found =
        parse_int(name, &index)
            ? call("nvmlDeviceGetHandleByIndex_v2", static_cast<unsigned>(index), &gpu)
            : call("nvmlDeviceGetHandleByUUID", name.c_str(), &gpu);
    return found ? gpu : nullptr;
  }

  wire::GpuUsage read(void* gpu) const {
    wire::GpuUsage usage;
    Utilization rates = {};
    Memory memory = {};
    unsigned clock = 0, power = 0, celsius = 0;
    Wide reasons = 0;
    if (call("nvmlDeviceGetUtilizationRates", gpu, &rates)) {
      usage.set_utilization(static_cast<int>(rates.gpu));
    }
    if (call("nvmlDeviceGetMemoryInfo", gpu, &memory)) {
      usage.set_memory_used(static_cast<int64_t>(memory.used));
      usage.set_memory_total(static_cast<int64_t>(memory.total));
    }
    if (call("nvmlDeviceGetClockInfo", gpu, kClockSm, &clock)) {
      usage.set_clock_mhz(static_cast<int>(clock));
    }
    if (call("nvmlDeviceGetPowerUsage", gpu, &power)) {
      usage.set_power_watts(static_cast<int>((power + 500) / 1000));
    }
    if (call("nvmlDeviceGetTemperature", gpu, kTemperatureGpu, &celsius)) {
      usage.set_celsius(static_cast<int>(celsius));
    }
    if (call("nvmlDeviceGetCurrentClocksThrottleReasons", gpu, &reasons)) {
      usage.set_throttled(slowing_reasons(reasons));
    }
    return usage;
  }

 private:
  // Calls a function that returns 0 on success; returns whether it exists and succeeded.
  template <typename... Args>
  bool call(const char* name, Args... args) const {
    using Function = int (*)(Args...);
    const auto function = reinterpret_cast<Function>(::dlsym(handle_, name));
    return function && function(args...) == kSuccess;
  }

  void* const handle_;  // stays open: the driver may have threads
  bool ready_ = false;
};

}  // namespace

struct GpuMonitor::State {
  mutable Mutex mutex;
  CondVar changed;
  std::map<int, wire::GpuUsage> latest FLEET_GUARDED_BY(mutex);
  bool ends FLEET_GUARDED_BY(mutex) = false;
  bool ended FLEET_GUARDED_BY(mutex) = false;

  void run(const std::vector<int>& devices, std::chrono::milliseconds interval,
           const std::string& library) {
    read_until_end(devices, interval, library);
    const MutexLock lock(mutex);
    ended = true;
    changed.notify_all();
  }

 private:
  void read_until_end(const std::vector<int>& devices, std::chrono::milliseconds interval,
                      const std::string& library) {
    const Nvml nvml(library);
    if (!nvml.ready()) return spdlog::debug("no values of GPUs: {} cannot be used", library);
    const std::string visible = env_or("CUDA_VISIBLE_DEVICES", "");
    std::map<int, void*> gpus;
    for (const int device : devices) {
      if (void* gpu = nvml.find(gpu_name(device, visible))) gpus[device] = gpu;
    }
    for (;;) {
      std::map<int, wire::GpuUsage> now;
      for (const auto& [device, gpu] : gpus) {
        now[device] = nvml.read(gpu);
        now[device].set_id(device);
      }
      const MutexLock lock(mutex);
      latest = std::move(now);
      const auto until = std::chrono::steady_clock::now() + interval;
      while (!ends && std::chrono::steady_clock::now() < until) changed.wait_until(mutex, until);
      if (ends) return;
    }
  }
};

GpuMonitor::GpuMonitor(std::vector<int> devices, std::chrono::milliseconds interval,
                       const std::string& library)
    : state_(std::make_shared<State>()) {
  if (start_detached([state = state_, devices = std::move(devices), interval, library] {
        state->run(devices, interval, library);
      })) {
    return;
  }
  spdlog::debug("no values of GPUs: no thread can be created");
  const MutexLock lock(state_->mutex);
  state_->ended = true;
}

GpuMonitor::~GpuMonitor() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  const MutexLock lock(state_->mutex);
  state_->ends = true;
  state_->changed.notify_all();
  while (!state_->ended && std::chrono::steady_clock::now() < until) {
    state_->changed.wait_until(state_->mutex, until);
  }
}

std::map<int, wire::GpuUsage> GpuMonitor::latest() const {
  const MutexLock lock(state_->mutex);
  return state_->latest;
}

std::string gpu_name(int device, const std::string& visible) {
  const std::vector<std::string> listed = split(visible, ',');
  const auto position = static_cast<size_t>(device);
  return position < listed.size() ? listed[position] : std::to_string(device);
}

}  // namespace fleet
