// Memory, streams and events of an NVIDIA GPU, and the cuda backend's own options.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <string>

#include "backend/cuda/nvml.h"
#include "base/config.h"
#include "base/error.h"
#include "base/registry.h"
#include "tensor/caching_allocator.h"
#include "tensor/device.h"

namespace fleet::cuda {

// Names and defaults are those of Paddle 2.1's flags and strategy.
struct CudaOptions {
  bool tensor_op_math = false;              // TF32 for float32 products and convolutions
  bool cudnn_exhaustive_search = false;     // measure algorithms instead of using heuristics
  int64_t conv_workspace_size_limit = 512;  // MiB, per convolution
  bool cudnn_attention = true;    // attention in 16-bit types through cuDNN where it has a plan
  double memory_fraction = 0.92;  // fraction of the device's memory that may be used
};
Schema options_schema();
// settings: of options_schema().
CudaOptions options_from(const Settings& settings);

// Converts a CUDA error to fleet::Error: kNoMemory if memory ran out, otherwise kInternal.
//   what  the call, for the message;  where  "cuda:0"
void check(cudaError_t result, const char* what, const std::string& where = {});

inline cudaStream_t stream_of(Stream& stream) {
  return static_cast<cudaStream_t>(stream.native_handle());
}

// A library that the backend uses adds a line to description().
struct LibraryDef {
  std::string (*line)() = nullptr;  // "cuDNN Version: 9.19."
};
Registry<LibraryDef>& libraries();
// FLEET_CUDA_LIBRARY(cudnn) { def.line = ...; } in lib/engine/backend/cuda/library_lines.cc.
#define FLEET_CUDA_LIBRARY(name)                                 \
  FLEET_REGISTER(library_##name, ::fleet::cuda::LibraryDef& def, \
                 ::fleet::cuda::libraries().define, #name)

class CudaDevice;
// The device of a kernel's context or layout query. kInternal if it belongs to another backend.
CudaDevice& cuda_device(Device& device);

// Streams and events may be used from any thread, one at a time. A failure of a stream's work is
// reported as an Error by a later call on the device: CUDA reports it to the first caller.
class CudaDevice : public Device {
 public:
  explicit CudaDevice(int index, const CudaOptions& own = {}, const DeviceOptions& options = {});
  const CudaOptions& cuda_options() const { return own_; }
  int index() const override { return index_; }
  const cudaDeviceProp& properties() const { return properties_; }
  std::string name() const override { return name_; }
  std::string backend() const override { return "cuda"; }
  std::string communicator() const override { return "nccl"; }
  Buffer allocate(size_t bytes) override;
  DeviceMemory memory() const override;
  std::optional<Telemetry> telemetry() override;
  std::vector<std::string> description() const override;
  bool runs_beside_host() const override { return true; }
  std::unique_ptr<Stream> make_stream(const std::string& name) override;
  std::unique_ptr<Event> make_event() override;
  void copy(void* to, const void* from, size_t bytes, Stream& stream) override;
  Buffer allocate_host(size_t bytes) override;
  std::unique_ptr<Recording> record(Stream& origin, const std::function<void()>& issue) override;

  // Returns free cached memory to the driver.
  void trim() { allocator_->trim(); }

 private:
  Error no_memory(size_t bytes) const;

  const CudaOptions own_;
  int index_;
  cudaDeviceProp properties_{};
  std::shared_ptr<CachingAllocator> allocator_;  // buffers may outlive the device
  std::unique_ptr<Nvml> nvml_;                   // null: unavailable, or not requested so far
  bool looked_for_nvml_ = false;
  std::string name_;
};

}  // namespace fleet::cuda
