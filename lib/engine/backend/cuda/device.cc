#include "backend/cuda/device.h"

#include <algorithm>
#include <cstring>

#include "base/number_text.h"
#include "base/text.h"

namespace fleet::cuda {

namespace {

// CUDA's current device is a property of the thread: sets it for a call and restores it.
class CurrentDevice {
 public:
  explicit CurrentDevice(int index) {
    check(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != index) check(cudaSetDevice(index), "cudaSetDevice");
  }
  ~CurrentDevice() { cudaSetDevice(before_); }

 private:
  int before_ = 0;
};

CachingAllocator::Source memory_of(int index) {
  const auto take = [index](size_t bytes) -> void* {
    CurrentDevice current(index);
    void* piece = nullptr;
    if (cudaMalloc(&piece, bytes) == cudaSuccess) return piece;
    cudaGetLastError();
    return nullptr;
  };
  return {.take = take, .give_back = [](void* piece) { cudaFree(piece); }};
}

class CudaEvent : public Event {
 public:
  explicit CudaEvent(std::string where) : where_(std::move(where)) {
    // Blocking: otherwise a host thread that waits would keep a core busy, which decodes no images.
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming | cudaEventBlockingSync),
          "cudaEventCreate", where_);
  }
  ~CudaEvent() override { cudaEventDestroy(event_); }
  void synchronize() override {
    check(cudaEventSynchronize(event_), "cudaEventSynchronize", where_);
  }
  cudaEvent_t get() const { return event_; }

 private:
  std::string where_;
  cudaEvent_t event_ = nullptr;
};

class CudaStream : public Stream {
 public:
  explicit CudaStream(std::string where) : where_(std::move(where)) {
    // Not ordered with the legacy default stream, which libraries may use.
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate", where_);
  }
  ~CudaStream() override {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  void record(Event& event) override {
    check(cudaEventRecord(static_cast<CudaEvent&>(event).get(), stream_), "cudaEventRecord",
          where_);
  }
  void wait(Event& event) override {
    check(cudaStreamWaitEvent(stream_, static_cast<CudaEvent&>(event).get(), 0),
          "cudaStreamWaitEvent", where_);
  }
  void synchronize() override {
    check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize", where_);
  }
  void* native_handle() override { return stream_; }

 private:
  std::string where_;
  cudaStream_t stream_ = nullptr;
};

class CudaGraph : public Recording {
 public:
  // Takes ownership of the graph. stream: where it will usually be launched.
  CudaGraph(cudaGraph_t graph, cudaStream_t stream, std::string where) : where_(std::move(where)) {
    const cudaError_t made = cudaGraphInstantiateWithFlags(&executable_, graph, 0);
    cudaGraphDestroy(graph);
    check(made, "cudaGraphInstantiate", where_);
    check(cudaGraphUpload(executable_, stream), "cudaGraphUpload", where_);
  }
  ~CudaGraph() override { cudaGraphExecDestroy(executable_); }
  void launch(Stream& stream) override {
    check(cudaGraphLaunch(executable_, stream_of(stream)), "cudaGraphLaunch", where_);
  }

 private:
  std::string where_;
  cudaGraphExec_t executable_ = nullptr;
};

std::string version(int number) {  // 13000: 13.0
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

Registry<LibraryDef>& libraries() {
  static Registry<LibraryDef> registry("library");
  return registry;
}

void check(cudaError_t result, const char* what, const std::string& where) {
  if (result == cudaSuccess) return;
  cudaGetLastError();  // clears the error, so that the next call does not report it again
  const std::string failure = std::string(what) + " failed: " + cudaGetErrorString(result);
  if (result == cudaErrorMemoryAllocation) {
    throw Error(ErrorCode::kNoMemory, failure, where,
                "use a smaller data.batch_size, or stop other programs on the GPU");
  }
  throw Error(ErrorCode::kInternal, failure, where);
}

CudaDevice& cuda_device(Device& device) {
  FLEET_CHECK(device.backend() == "cuda", "a cuda kernel runs on " + device.name());
  return static_cast<CudaDevice&>(device);
}

CudaDevice::CudaDevice(int index, const CudaOptions& own, const DeviceOptions& options)
    : Device(options), own_(own), index_(index), name_("cuda:" + std::to_string(index)) {
  // Kernels and libraries use the current device of the thread that drives them.
  check(cudaSetDevice(index), "cudaSetDevice", name_);
  check(cudaFree(nullptr), "starting the device", name_);
  check(cudaGetDeviceProperties(&properties_, index), "cudaGetDeviceProperties", name_);
  const double limit = own.memory_fraction * static_cast<double>(properties_.totalGlobalMem);
  allocator_ = std::make_shared<CachingAllocator>(memory_of(index), static_cast<size_t>(limit));
}

Buffer CudaDevice::allocate(size_t bytes) {
  if (bytes == 0) return {};
  CurrentDevice current(index_);
  void* memory = allocator_->allocate(bytes);
  if (!memory) throw no_memory(bytes);
  Buffer buffer(
      std::shared_ptr<void>(memory, [allocator = allocator_](void* p) { allocator->free(p); }),
      bytes);
  // The memset may still be running, and the streams made here do not wait for it.
  check(cudaMemset(memory, 0, bytes), "cudaMemset", name_);
  check(cudaDeviceSynchronize(), "cudaMemset", name_);
  return buffer;
}

DeviceMemory CudaDevice::memory() const {
  CurrentDevice current(index_);
  size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", name_);
  const size_t used = allocator_->used(), kept = allocator_->taken() - used;
  const size_t allowed = allocator_->limit() - std::min(used, allocator_->limit());
  return {.total = total, .available = std::min(free + kept, allowed)};
}

Error CudaDevice::no_memory(size_t bytes) const {
  const DeviceMemory memory = this->memory();
  return Error(ErrorCode::kNoMemory,
               mebibytes(bytes) + " requested, " + mebibytes(memory.available) + " of " +
                   mebibytes(memory.total) + " available (FLAGS_fraction_of_gpu_memory_to_use is " +
                   format_printf("%g", own_.memory_fraction) + ", " +
                   mebibytes(allocator_->used()) + " in use by this job)",
               name_, "use a smaller data.batch_size, or stop other programs on the GPU");
}

std::optional<Telemetry> CudaDevice::telemetry() {
  if (!looked_for_nvml_) {
    looked_for_nvml_ = true;
    char id[32] = "";
    check(cudaDeviceGetPCIBusId(id, sizeof id, index_), "cudaDeviceGetPCIBusId", name_);
    nvml_ = Nvml::open(id);
  }
  return nvml_ ? nvml_->read() : std::nullopt;
}

// Uses Paddle's wording.
std::vector<std::string> CudaDevice::description() const {
  int driver = 0, runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion", name_);
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion", name_);
  const std::string device = "device: " + std::to_string(index_) + ", ";
  std::vector<std::string> lines = {
      device + properties_.name + ", GPU Compute Capability: " + std::to_string(properties_.major) +
      "." + std::to_string(properties_.minor) + ", Driver API Version: " + version(driver) +
      ", Runtime API Version: " + version(runtime)};
  for (const std::string& name : libraries().names()) {
    lines.push_back(device + libraries().get(name).line());
  }
  return lines;
}

std::unique_ptr<Stream> CudaDevice::make_stream(const std::string&) {
  CurrentDevice current(index_);
  return std::make_unique<CudaStream>(name_);
}

std::unique_ptr<Event> CudaDevice::make_event() {
  CurrentDevice current(index_);
  return std::make_unique<CudaEvent>(name_);
}

Buffer CudaDevice::allocate_host(size_t bytes) {
  if (bytes == 0) return {};
  CurrentDevice current(index_);
  void* memory = nullptr;
  const cudaError_t result = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // clears the error
    // Not kNoMemory: a batch that fits the device may not help.
    throw Error(ErrorCode::kIo, "the host cannot pin " + mebibytes(bytes) + " of its memory", name_,
                "free memory of the host, or use a smaller data.batch_size or data.prefetch, or no "
                "recompute_configs.enable_offload");
  }
  check(result, "cudaHostAlloc", name_);
  std::memset(memory, 0, bytes);
  return Buffer(std::shared_ptr<void>(memory, [](void* p) { cudaFreeHost(p); }), bytes);
}

std::unique_ptr<Recording> CudaDevice::record(Stream& origin, const std::function<void()>& issue) {
  CurrentDevice current(index_);
  cudaStream_t stream = stream_of(origin);
  // Thread-local, so that other threads (a communicator's watcher, NVML) may continue to call CUDA.
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture",
        name_);
  cudaGraph_t graph = nullptr;
  try {
    issue();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture", name_);
  return std::make_unique<CudaGraph>(graph, stream, name_);
}

void CudaDevice::copy(void* to, const void* from, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  // The pointers determine which side is the host.
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream)), "cudaMemcpyAsync",
        name_);
}

Schema options_schema() {
  const CudaOptions initial;
  return Schema()
      .boolean("tensor_op_math", initial.tensor_op_math,
               "TF32 for float32 products and convolutions")
      .boolean("cudnn_exhaustive_search", initial.cudnn_exhaustive_search,
               "measure cuDNN's algorithms instead of using its heuristics")
      .integer("conv_workspace_size_limit", initial.conv_workspace_size_limit, 0, 1e9,
               "MiB that an algorithm of cuDNN may use, per convolution")
      .boolean("cudnn_attention", initial.cudnn_attention,
               "attention in 16-bit types through cuDNN where it has a plan")
      .number("memory_fraction", initial.memory_fraction, 0, 1,
              "fraction of the device's memory that may be used");
}

CudaOptions options_from(const Settings& settings) {
  return {.tensor_op_math = settings.boolean("tensor_op_math"),
          .cudnn_exhaustive_search = settings.boolean("cudnn_exhaustive_search"),
          .conv_workspace_size_limit = settings.integer("conv_workspace_size_limit"),
          .cudnn_attention = settings.boolean("cudnn_attention"),
          .memory_fraction = settings.number("memory_fraction")};
}

}  // namespace fleet::cuda
