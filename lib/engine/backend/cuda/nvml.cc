#include "backend/cuda/nvml.h"

#include <dlfcn.h>

namespace fleet::cuda {
namespace {

// Copied from nvml.h, which toolkits may lack: its interface is stable.
constexpr int kSuccess = 0, kClockSm = 1;
struct Utilization {
  unsigned gpu, memory;  // percent
};
struct Memory {
  unsigned long long total, free, used;  // NOLINT(runtime/int): NVML's type
};

}  // namespace

struct Nvml::Functions {
  void* library = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*gpu_by_bus)(const char* id, void** gpu) = nullptr;
  int (*utilization)(void* gpu, Utilization* rates) = nullptr;
  int (*memory)(void* gpu, Memory* memory) = nullptr;
  int (*clock)(void* gpu, int type, unsigned* mhz) = nullptr;

  template <typename F>
  bool find(F& function, const char* name) {
    function = reinterpret_cast<F>(::dlsym(library, name));
    return function != nullptr;
  }
  bool load(const char* path) {
    library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library && find(init, "nvmlInit_v2") && find(shutdown, "nvmlShutdown") &&
           find(gpu_by_bus, "nvmlDeviceGetHandleByPciBusId_v2") &&
           find(utilization, "nvmlDeviceGetUtilizationRates") &&
           find(memory, "nvmlDeviceGetMemoryInfo") && find(clock, "nvmlDeviceGetClockInfo");
  }
  ~Functions() {
    if (library) ::dlclose(library);
  }
};

std::unique_ptr<Nvml> Nvml::open(const std::string& pci_bus_id, const std::string& library) {
  auto functions = std::make_unique<Functions>();
  if (!functions->load(library.c_str()) || functions->init() != kSuccess) return nullptr;
  void* gpu = nullptr;
  if (functions->gpu_by_bus(pci_bus_id.c_str(), &gpu) != kSuccess) {
    functions->shutdown();
    return nullptr;
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions), gpu));
}

Nvml::Nvml(std::unique_ptr<Functions> functions, void* gpu)
    : functions_(std::move(functions)), gpu_(gpu) {}

Nvml::~Nvml() { functions_->shutdown(); }

std::optional<Telemetry> Nvml::read() {
  Utilization rates{};
  Memory memory{};
  unsigned clock = 0;
  const bool has_rates = functions_->utilization(gpu_, &rates) == kSuccess;
  const bool has_memory = functions_->memory(gpu_, &memory) == kSuccess;
  const bool has_clock = functions_->clock(gpu_, kClockSm, &clock) == kSuccess;
  if (!has_rates && !has_memory && !has_clock) return std::nullopt;
  return Telemetry{.utilization = has_rates ? double(rates.gpu) : 0,
                   .memory_used = has_memory ? static_cast<size_t>(memory.used) : 0,
                   .clock = has_clock ? double(clock) : 0};
}

}  // namespace fleet::cuda
