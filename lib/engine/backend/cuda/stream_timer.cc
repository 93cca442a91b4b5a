// Times of work on CUDA streams, by events.
#include "tensor/stream_timer.h"

#include <cuda_runtime_api.h>

#include "backend/cuda/device.h"
#include "base/clock.h"

namespace fleet::cuda {
namespace {

class CudaStreamTimer : public StreamTimer {
 public:
  CudaStreamTimer(size_t marks, std::string where) : where_(std::move(where)) {
    events_.reserve(marks + 1);
    for (size_t i = 0; i <= marks; ++i) {
      cudaEvent_t event = nullptr;
      check(cudaEventCreate(&event), "cudaEventCreate", where_);
      events_.push_back(event);
    }
    cudaStream_t stream = nullptr;
    check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate", where_);
    const cudaError_t recorded = cudaEventRecord(events_[0], stream);
    const cudaError_t reached = cudaEventSynchronize(events_[0]);
    start_ns_ = monotonic_ns();
    cudaStreamDestroy(stream);
    check(recorded, "cudaEventRecord", where_);
    check(reached, "cudaEventSynchronize", where_);
  }
  ~CudaStreamTimer() override {
    for (cudaEvent_t event : events_) cudaEventDestroy(event);
  }

  int mark(Stream& stream) override {
    if (used_ + 1 == events_.size()) return kNoMark;
    auto* native = static_cast<cudaStream_t>(stream.native_handle());
    check(cudaEventRecord(events_[used_ + 1], native), "cudaEventRecord", where_);
    return static_cast<int>(used_++);
  }

  bool reached(int mark) override {
    const cudaError_t state = cudaEventQuery(events_[static_cast<size_t>(mark) + 1]);
    if (state == cudaErrorNotReady) {
      (void)cudaGetLastError();  // the next call must not report it
      return false;
    }
    check(state, "cudaEventQuery", where_);
    return true;
  }

  std::vector<int64_t> times() override {
    std::vector<int64_t> all;
    all.reserve(used_);
    for (size_t i = 1; i <= used_; ++i) {
      float milliseconds = 0;
      check(cudaEventSynchronize(events_[i]), "cudaEventSynchronize", where_);
      check(cudaEventElapsedTime(&milliseconds, events_[0], events_[i]), "cudaEventElapsedTime",
            where_);
      all.push_back(start_ns_ + static_cast<int64_t>(double{milliseconds} * 1e6));
    }
    return all;
  }

 private:
  const std::string where_;
  std::vector<cudaEvent_t> events_;  // the first is the start
  int64_t start_ns_ = 0;
  size_t used_ = 0;
};

}  // namespace

FLEET_STREAM_TIMER(cuda) {
  def.make = [](const Device& device, size_t marks) -> std::unique_ptr<StreamTimer> {
    int before = 0;  // events belong to the device on which they are made
    check(cudaGetDevice(&before), "cudaGetDevice");
    check(cudaSetDevice(device.index()), "cudaSetDevice", device.name());
    auto timer = std::make_unique<CudaStreamTimer>(marks, device.name());
    check(cudaSetDevice(before), "cudaSetDevice");
    return timer;
  };
}

}  // namespace fleet::cuda
