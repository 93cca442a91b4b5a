#include "diagnosis/stack_waits.h"

#include <array>
#include <string_view>

namespace fleet {
namespace {

struct WaitMark {
  std::string_view function;  // a part of its name, or of a Python frame "NAME (FILE:LINE)"
  const char* what;
};

// The first that a frame has counts.
constexpr auto kWaitMarks = std::to_array<WaitMark>({
    {"TCPStore", "the store"},
    {"StoreClient", "the store"},
    {"PrefixStore", "the store"},
    {"_store_based_barrier", "the store"},
    {"torch/distributed/rendezvous.py", "the store"},
    {"init_process_group", "the store"},
    {"all_reduce", "a collective"},
    {"allreduce", "a collective"},
    {"AllReduce", "a collective"},
    {"all_gather", "a collective"},
    {"allgather", "a collective"},
    {"AllGather", "a collective"},
    {"reduce_scatter", "a collective"},
    {"ReduceScatter", "a collective"},
    {"all_to_all", "a collective"},
    {"barrier", "a collective"},
    {"Barrier", "a collective"},
    {"broadcast", "a collective"},
    {"Broadcast", "a collective"},
    {"ProcessGroup", "a collective"},
    {"Communicator", "a collective"},
    {"ncclGroupEnd", "a collective"},
    {"gloo::", "a collective"},
    {"MPI_", "a collective"},
    {"_next_data", "data"},
    {"_get_data", "data"},
    {"DataLoader", "data"},
    {"dataloader.py", "data"},
    {"InputPipeline", "data"},
    {"DevicePrefetcher", "data"},
    {"cudaStreamSynchronize", "the GPU"},
    {"cudaDeviceSynchronize", "the GPU"},
    {"cuStreamSynchronize", "the GPU"},
    {"cuCtxSynchronize", "the GPU"},
    {"subprocess.py", "another process"},
    {"waitpid", "another process"},
    {"wait4", "another process"},
    {"_run_exitfuncs", "an exit hook"},
    {"atexit", "an exit hook"},
    {"run_exit_handlers", "an exit hook"},
    {"Py_Finalize", "an exit hook"},
    {"threading._shutdown", "an exit hook"},
});

const char* wait_of(std::string_view frame) {
  for (const WaitMark& mark : kWaitMarks) {
    if (frame.find(mark.function) != frame.npos) return mark.what;
  }
  return nullptr;
}

}  // namespace

std::string waits_for(const StackCluster& cluster) {
  for (const auto* frames : {&cluster.python_frames(), &cluster.frames()}) {
    for (const std::string& frame : *frames) {
      if (const char* what = wait_of(frame)) return what;
    }
  }
  return {};
}

}  // namespace fleet
