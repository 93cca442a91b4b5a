// The part of the CUDA runtime that the backend uses, on the host's memory. Work runs when it is
// issued, which is one of the orders a GPU may take as long as events are recorded before they are
// waited for. Captures are kept as closures and follow CUDA's rules: what may not be called during
// one fails, forked streams must be joined. cudaDeviceSynchronize() does not wait for the threads
// of streams: ranks that are threads of one process share this device.
#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tensor/host.h"
#include "tests/engine/backend/cuda/emulator/stream.h"

namespace {

// A vector clock: for each stream, how much of its captured work is known to be done.
using Clock = std::map<CUstream_st*, int>;

struct Capture {
  CUstream_st* origin = nullptr;
  std::vector<std::function<void()>> work;
  std::vector<CUstream_st*> streams;
  bool waits = false;  // some of the work waits for others
  bool broken = false;
};

}  // namespace

struct CUstream_st {
  std::unique_ptr<fleet::HostStream> thread;  // once work was issued that waits for others
  std::shared_ptr<Capture> capture;
  int issued = 0;
  Clock seen;
};

struct CUevent_st {
  std::shared_ptr<Capture> capture;  // where it was recorded in one
  Clock seen;
  std::shared_ptr<std::atomic<bool>> passed;  // where it was recorded on a stream with a thread
  // When it was passed, in nanoseconds of the steady clock; 0: never.
  std::shared_ptr<std::atomic<int64_t>> time = std::make_shared<std::atomic<int64_t>>(0);
};

struct CUgraph_st {
  std::vector<std::function<void()>> work;
  bool waits;
};

struct CUgraphExec_st {
  std::vector<std::function<void()>> work;
  bool waits;
};

namespace {

constexpr size_t kMemory = size_t{8} << 30;

// Captures this thread has begun: calls that wait or allocate break them.
thread_local std::vector<std::shared_ptr<Capture>> captures;
thread_local cudaError_t last_error = cudaSuccess;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

cudaError_t outside_capture() {
  for (const auto& capture : captures) capture->broken = true;
  return result(captures.empty() ? cudaSuccess : cudaErrorStreamCaptureUnsupported);
}

CUstream_st& default_stream() {
  static CUstream_st stream;
  return stream;
}
CUstream_st& stream_at(cudaStream_t stream) { return stream ? *stream : default_stream(); }

int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

void merge(Clock& into, const Clock& from) {
  for (const auto& [stream, count] : from) into[stream] = std::max(into[stream], count);
}

}  // namespace

namespace fleet::emulator {

void issue(cudaStream_t handle, std::function<void()> work) {
  CUstream_st& stream = stream_at(handle);
  if (stream.capture) {
    stream.seen[&stream] = ++stream.issued;
    stream.capture->work.push_back(std::move(work));
  } else if (stream.thread) {
    stream.thread->enqueue([owned = new std::function<void()>(std::move(work))] {
      (*owned)();
      delete owned;
    });
  } else {
    work();
  }
}

void issue_waiting(cudaStream_t handle, std::function<void()> work) {
  CUstream_st& stream = stream_at(handle);
  if (stream.capture) {
    stream.capture->waits = true;
  } else if (!stream.thread) {
    stream.thread = std::make_unique<HostStream>("gpu");
  }
  issue(handle, std::move(work));
}

cudaError_t launchable(dim3 grid, dim3 block, size_t shared_bytes) {
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool fits = threads >= 1 && threads <= 1024 && block.z <= 64 && grid.x <= 0x7fffffffu &&
                    grid.y <= 65535 && grid.z <= 65535 && shared_bytes <= 227 << 10;
  return result(fits ? cudaSuccess : cudaErrorInvalidValue);
}

}  // namespace fleet::emulator

using fleet::emulator::issue;
using fleet::emulator::issue_waiting;

extern "C" {

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureUnjoined:
      return "capturing stream has unjoined work";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
    default:
      return "an error of the emulated GPU";
  }
}
const char* cudaGetErrorName(cudaError_t error) { return cudaGetErrorString(error); }

// Devices.
cudaError_t cudaGetDeviceCount(int* count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  return result(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) { return cudaDriverGetVersion(version); }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Emulated GPU");
  properties->major = 9;
  properties->multiProcessorCount = 4;
  properties->totalGlobalMem = kMemory;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->sharedMemPerBlock = 48 << 10;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int) {
  std::strncpy(id, "0000:00:00.0", length);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = *total = kMemory;
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() { return outside_capture(); }

// Memory. Fresh device memory is filled with garbage.
cudaError_t cudaMalloc(void** memory, size_t bytes) {
  if (const cudaError_t error = outside_capture()) return error;
  if (bytes > kMemory) return result(cudaErrorMemoryAllocation);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xcb, bytes);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  if (const cudaError_t error = outside_capture()) return error;
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
  return cudaMalloc(memory, bytes);
}
cudaError_t cudaMallocHost(void** memory, size_t bytes) { return cudaMalloc(memory, bytes); }
cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
cudaError_t cudaMemset(void* memory, int value, size_t bytes) {
  if (const cudaError_t error = outside_capture()) return error;
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  issue(stream, [=] { std::memset(memory, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  issue(stream, [=] { std::memmove(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind) {
  if (const cudaError_t error = outside_capture()) return error;
  std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy2DAsync(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind, cudaStream_t stream) {
  if (width > to_pitch || width > from_pitch) return result(cudaErrorInvalidPitchValue);
  issue(stream, [=] {
    for (size_t row = 0; row < height; ++row) {
      std::memmove(static_cast<char*>(to) + row * to_pitch,
                   static_cast<const char*>(from) + row * from_pitch, width);
    }
  });
  return cudaSuccess;
}

// Streams and events.
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = new CUstream_st;
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete stream;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (!stream_at(stream).capture) {
    if (stream_at(stream).thread) stream_at(stream).thread->synchronize();
    return outside_capture();
  }
  stream_at(stream).capture->broken = true;
  return result(cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t event, unsigned) {
  CUstream_st& stream = stream_at(handle);
  if (!event->capture) {
    if (stream.capture) {
      stream.capture->broken = true;
      return result(cudaErrorStreamCaptureIsolation);
    }
    // Its work ran when it was issued, or runs on a thread.
    if (const auto passed = event->passed) issue_waiting(handle, [passed] { passed->wait(false); });
    return cudaSuccess;
  }
  if (!stream.capture) {  // joins the capture
    stream.capture = event->capture;
    stream.capture->streams.push_back(&stream);
    stream.seen.clear();
    stream.issued = 0;
  }
  if (stream.capture != event->capture) return result(cudaErrorStreamCaptureMerge);
  merge(stream.seen, event->seen);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream_at(stream).capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->capture = stream_at(stream).capture;
  event->seen = stream_at(stream).seen;
  event->passed = nullptr;
  if (event->capture) return cudaSuccess;
  if (!stream_at(stream).thread) {
    *event->time = now_ns();
    return cudaSuccess;
  }
  *event->time = 0;
  event->passed = std::make_shared<std::atomic<bool>>(false);
  issue(stream, [passed = event->passed, time = event->time] {
    *time = now_ns();
    *passed = true;
    passed->notify_all();
  });
  return cudaSuccess;
}
// In a capture, each launch of the graph records it.
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordExternal) return cudaEventRecord(event, stream);
  if (!stream_at(stream).capture) return result(cudaErrorIllegalState);
  issue(stream, [time = event->time] { *time = now_ns(); });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (!event->capture) {
    if (event->passed) event->passed->wait(false);
    return outside_capture();
  }
  event->capture->broken = true;
  return result(cudaErrorStreamCaptureUnsupported);
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->passed && !*event->passed) return cudaErrorNotReady;
  return cudaEventSynchronize(event);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const int64_t from = *begin->time, to = *end->time;
  if (from == 0 || to == 0) return cudaErrorNotReady;
  *milliseconds = static_cast<float>(static_cast<double>(to - from) * 1e-6);
  return cudaSuccess;
}

// Graphs.
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode) {
  if (handle == nullptr) return result(cudaErrorStreamCaptureUnsupported);
  if (handle->capture) return result(cudaErrorIllegalState);
  handle->capture = std::make_shared<Capture>();
  handle->capture->origin = handle;
  handle->capture->streams = {handle};
  handle->seen.clear();
  handle->issued = 0;
  captures.push_back(handle->capture);
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t* graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = handle->capture;
  if (!capture || capture->origin != handle) return result(cudaErrorIllegalState);
  std::erase(captures, capture);
  bool joined = true;
  for (CUstream_st* stream : capture->streams) {
    joined = joined && handle->seen[stream] == stream->issued;
    stream->capture = nullptr;
  }
  if (capture->broken) return result(cudaErrorStreamCaptureInvalidated);
  if (!joined) return result(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->work), capture->waits};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {  // NOLINT(runtime/int)
  *executable = new CUgraphExec_st{graph->work, graph->waits};
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags) {  // NOLINT(runtime/int)
  return cudaGraphInstantiate(executable, graph, flags);
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  const auto issue_graph = executable->waits ? issue_waiting : issue;
  issue_graph(stream, [executable] {
    for (const auto& work : executable->work) work();
  });
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, size_t* count) {
  *count = graph->work.size();
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;
  return cudaSuccess;
}

}  // extern "C"
