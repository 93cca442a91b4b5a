#include "tests/engine/comm/nccl/fake/fake_nccl.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>

#include "tests/engine/backend/cuda/emulator/stream.h"
#include "tests/engine/comm/nccl/fake/world.h"

using fleet::fake_nccl::Message;
using fleet::fake_nccl::Operation;
using fleet::fake_nccl::World;

// A rank's end of a communicator. Work in graphs and streams keeps it alive.
struct ncclComm {
  std::shared_ptr<World> world;
  int rank = 0;
  std::string name;
  std::shared_ptr<bool> in_graphs = std::make_shared<bool>();  // held by captured work
  std::atomic<bool> aborted{false};
  std::atomic<ncclResult_t> state{ncclInProgress};
  std::atomic<int> polls{0};  // so often the state is still "in progress"
  bool finalized = false;
  uint64_t collectives = 0;  // that ran
  int registered = 0;
};

namespace {

// Handles given to users; an aborted or destroyed one is not known any more.
struct State {
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<World>> worlds;  // by id
  std::map<ncclComm_t, std::shared_ptr<ncclComm>> comms;
  std::vector<fleet::fake_nccl::Call> calls;
  uint64_t next_id = 1;
  int latest_ids = 0;
  bool hanging = false;
};
State& state() {
  static State state;
  return state;
}

std::shared_ptr<ncclComm> find(ncclComm_t comm) {
  const std::lock_guard lock(state().mutex);
  const auto found = state().comms.find(comm);
  if (found == state().comms.end()) std::abort();  // used after it was given up
  return found->second;
}

uint64_t number_of(const ncclUniqueId& id) {
  uint64_t number = 0;
  std::memcpy(&number, id.internal, sizeof number);
  return number;
}

ncclResult_t init(ncclComm_t* handle, int ranks, int rank, int ids, const ncclUniqueId* all,
                  const ncclConfig_t* config) {
  if (rank < 0 || rank >= ranks || config->blocking != 0) return ncclInvalidArgument;
  auto comm = std::make_shared<ncclComm>();
  comm->rank = rank;
  comm->name = config->commName;
  const std::lock_guard lock(state().mutex);
  state().latest_ids = ids;
  std::shared_ptr<World>& world = state().worlds[number_of(all[ids - 1])];
  if (!world) world = std::make_shared<World>(ranks, state().hanging);
  comm->world = world;
  state().comms[comm.get()] = comm;
  *handle = comm.get();
  world->join();
  return ncclInProgress;
}

// Issues an operation of all ranks: it runs when the stream comes to it, each time.
ncclResult_t issue(const char* name, ncclComm_t handle, cudaStream_t stream, Operation operation) {
  const std::shared_ptr<ncclComm> comm = find(handle);
  operation.name = name;
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(stream, &status);
  auto held = status == cudaStreamCaptureStatusActive ? comm->in_graphs : nullptr;
  fleet::emulator::issue_waiting(stream, [=, held = held] {
    {
      const std::lock_guard lock(state().mutex);
      state().calls.push_back({comm->name, name, comm->rank, stream});
    }
    comm->world->run(comm->rank, comm->collectives++, operation, comm->aborted);
  });
  comm->polls = 3;
  return ncclInProgress;
}

ncclResult_t issue(const char* name, ncclComm_t handle, cudaStream_t stream, Message message) {
  const std::shared_ptr<ncclComm> comm = find(handle);
  fleet::emulator::issue_waiting(stream, [=] {
    if (std::strcmp(name, "send") == 0) {
      comm->world->send(comm->rank, message, comm->aborted);
    } else {
      comm->world->recv(comm->rank, message, comm->aborted);
    }
  });
  comm->polls = 3;
  return ncclInProgress;
}

void forget(ncclComm_t handle) {
  const std::lock_guard lock(state().mutex);
  state().comms.erase(handle);
}

}  // namespace

namespace fleet::fake_nccl {

void break_rank(int rank, ncclResult_t failure) {
  const std::lock_guard lock(state().mutex);
  for (const auto& [handle, comm] : state().comms) {
    if (comm->rank == rank) comm->state = failure;
  }
}

void hang_collectives() {
  const std::lock_guard lock(state().mutex);
  state().hanging = true;
}

std::vector<Call> calls() {
  const std::lock_guard lock(state().mutex);
  return state().calls;
}

void forget_calls() {
  const std::lock_guard lock(state().mutex);
  state().calls.clear();
}

int registrations() {
  const std::lock_guard lock(state().mutex);
  int sum = 0;
  for (const auto& [handle, comm] : state().comms) sum += comm->registered;
  return sum;
}

int latest_ids() {
  const std::lock_guard lock(state().mutex);
  return state().latest_ids;
}

}  // namespace fleet::fake_nccl

extern "C" {

ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
const char* ncclGetErrorString(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "no error";
    case ncclRemoteError:
      return "remote process exited or there was a network error";
    case ncclInvalidUsage:
      return "invalid usage";
    default:
      return "an error of the fake NCCL";
  }
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

// As NCCL's: a number, then the address of the maker.
ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  const std::lock_guard lock(state().mutex);
  const uint64_t number = state().next_id++;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(id->internal, &number, sizeof number);
  std::memcpy(id->internal + sizeof number, &address, sizeof address);
  return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return init(comm, ranks, rank, 1, &id, config);
}
ncclResult_t ncclCommInitRankScalable(ncclComm_t* comm, int ranks, int rank, int ids,
                                      ncclUniqueId* all, ncclConfig_t* config) {
  return init(comm, ranks, rank, ids, all, config);
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t* result) {
  const std::shared_ptr<ncclComm> comm = find(handle);
  if (comm->state == ncclInProgress && comm->world->complete()) comm->state = ncclSuccess;
  *result = comm->state;
  if (*result != ncclSuccess) return ncclSuccess;
  if (comm->polls > 0) {
    --comm->polls;
    *result = ncclInProgress;
  }
  // A graph that captured its work keeps it from ending.
  if (comm->finalized && comm->in_graphs.use_count() > 1) *result = ncclInProgress;
  return ncclSuccess;
}
ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  find(handle)->finalized = true;
  return ncclInProgress;
}
ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  find(handle);
  forget(handle);
  return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  const std::shared_ptr<ncclComm> comm = find(handle);
  forget(handle);
  comm->aborted = true;
  comm->world->wake();
  return ncclInProgress;
}

ncclResult_t ncclMemAlloc(void** memory, size_t bytes) {
  return cudaMalloc(memory, bytes) == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}
ncclResult_t ncclMemFree(void* memory) {
  cudaFree(memory);
  return ncclSuccess;
}
ncclResult_t ncclCommRegister(ncclComm_t handle, void* memory, size_t, void** registration) {
  const std::shared_ptr<ncclComm> comm = find(handle);
  const std::lock_guard lock(state().mutex);
  ++comm->registered;
  *registration = memory;
  return ncclSuccess;
}
ncclResult_t ncclCommDeregister(ncclComm_t handle, void*) {
  const std::shared_ptr<ncclComm> comm = find(handle);
  const std::lock_guard lock(state().mutex);
  --comm->registered;
  return ncclSuccess;
}

ncclResult_t ncclAllReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue("all_reduce", comm, stream,
               Operation{.in = in, .out = out, .count = count, .type = type, .op = op});
}
ncclResult_t ncclReduce(const void* in, void* out, size_t count, ncclDataType_t type,
                        ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  return issue(
      "reduce", comm, stream,
      Operation{.in = in, .out = out, .count = count, .type = type, .op = op, .root = root});
}
ncclResult_t ncclBroadcast(const void* in, void* out, size_t count, ncclDataType_t type, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue("broadcast", comm, stream,
               Operation{.in = in, .out = out, .count = count, .type = type, .root = root});
}
ncclResult_t ncclAllGather(const void* in, void* out, size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  return issue("all_gather", comm, stream,
               Operation{.in = in, .out = out, .count = count, .type = type});
}
ncclResult_t ncclReduceScatter(const void* in, void* out, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return issue("reduce_scatter", comm, stream,
               Operation{.in = in, .out = out, .count = count, .type = type, .op = op});
}
ncclResult_t ncclSend(const void* data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return issue("send", comm, stream, Message{const_cast<void*>(data), count, type, peer});
}
ncclResult_t ncclRecv(void* data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return issue("recv", comm, stream, Message{data, count, type, peer});
}

}  // extern "C"
