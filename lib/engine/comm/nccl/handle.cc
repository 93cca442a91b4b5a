#include "comm/nccl/handle.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/log.h"
#include "comm/nccl/ids.h"

namespace fleet::nccl {
namespace {

constexpr size_t kPending = 64;
constexpr std::chrono::seconds kAnswerTime(2);   // for the others to report their progress
constexpr std::chrono::seconds kGoodbyeTime(2);  // for work that a rank began before it left
constexpr std::chrono::seconds kFinalizeTime(10);

uint64_t hash_of(const std::string& name) {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// Releases a communicator whose work has ended on this rank. It may still have to forward data that
// others have not received, so it is not aborted at once.
void leave(ncclComm_t comm, const std::atomic<bool>& failed) {
  RunningDeadline deadline(kFinalizeTime);
  ncclResult_t result = ncclCommFinalize(comm);
  while (result == ncclInProgress && !failed && !deadline.passed()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (ncclCommGetAsyncError(comm, &result) != ncclSuccess) break;
  }
  if (result == ncclSuccess) {
    ncclCommDestroy(comm);
  } else {
    ncclCommAbort(comm);
  }
}

}  // namespace

std::unique_ptr<Handle> Handle::make(std::shared_ptr<Link> link, std::string name,
                                     std::vector<int> members, int rank) {
  std::unique_ptr<Handle> handle(
      new Handle(std::move(link), std::move(name), std::move(members), rank));
  handle->connect();
  return handle;
}

Handle::Handle(std::shared_ptr<Link> link, std::string name, std::vector<int> members, int rank)
    : link_(std::move(link)),
      name_(std::move(name)),
      members_(std::move(members)),
      rank_(rank),
      id_(hash_of(name_)) {}

Handle::~Handle() {
  cudaSetDevice(link_->device());
  bool in_good_order = false;
  ncclComm_t comm = nullptr;
  {
    const MutexLock lock(link_->mutex_);
    while (busy_) link_->changed_.wait(link_->mutex_);
    std::erase(link_->handles_, this);
    drop_completed_work();
    in_good_order = !link_->error_ && pending_count_ == 0;
    comm = std::exchange(comm_, nullptr);
  }
  if (comm && in_good_order) {
    leave(comm, link_->failed_);
  } else if (comm) {
    ncclCommAbort(comm);
  }
  for (const Pending& pending : pending_) cudaEventDestroy(pending.done);
}

void Handle::connect() {
  use_device(link_->device());
  const int ranks = static_cast<int>(members_.size());
  RunningDeadline deadline(link_->options().timeout);
  const IdWait wait{[&](const std::string& key) -> std::optional<std::string> {
                      try {
                        return link_->wait_for_key(key, &deadline);
                      } catch (const Error& error) {
                        if (error.code() != ErrorCode::kTimeout) throw;
                        return std::nullopt;
                      }
                    },
                    [&](std::vector<int> late) {
                      for (int& rank : late) rank = members_[static_cast<size_t>(rank)];
                      return ranks_late_error(link_->group().name_of(late),
                                              link_->options().timeout.count());
                    }};
  std::vector<ncclUniqueId> ids = exchange_ids(name_, rank_, ranks, *link_->options().store, wait);
  if (rank_ == 0) interface_ = interface_of(ids[0]);
  for (size_t i = 0; i < kPending; ++i) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    const MutexLock lock(link_->mutex_);
    pending_.push_back({event, 0});
  }
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.commName = name_.c_str();
  const int count = static_cast<int>(ids.size());
  const uint64_t operation = link_->peer_monitor().begin_operation(id_);
  ncclComm_t comm = nullptr;
  const ncclResult_t result =
      count == 1 ? ncclCommInitRankConfig(&comm, ranks, ids[0], rank_, &config)
                 : ncclCommInitRankScalable(&comm, ranks, rank_, count, ids.data(), &config);
  const MutexLock lock(link_->mutex_);
  comm_ = comm;
  link_->handles_.push_back(this);
  link_->changed_.notify_all();
  link_->throw_error();
  settle(result, "connecting the ranks", operation);
  for (const Link::Memory& memory : link_->memories_) register_memory(memory.data, memory.bytes);
}

// NCCL then transfers directly from and to this memory if the hardware can. Otherwise it goes
// through NCCL's own buffers, as usual.
void Handle::register_memory(void* memory, size_t bytes) {
  void* handle = nullptr;
  if (!comm_) return;
  const ncclResult_t result = ncclCommRegister(comm_, memory, bytes, &handle);
  if (result == ncclSuccess && handle) {
    registered_.emplace_back(memory, handle);
  } else {
    spdlog::debug("{} does not register memory: {}", name_, ncclGetErrorString(result));
  }
}

void Handle::deregister_memory(void* memory) {
  const ncclComm_t comm = comm_;
  std::erase_if(registered_, [&](const auto& known) {
    if (known.first != memory) return false;
    if (comm) ncclCommDeregister(comm, known.second);
    return true;
  });
}

ncclResult_t Handle::state() const {
  ncclResult_t state = ncclSuccess;
  if (!comm_) return ncclInProgress;  // not created yet, or aborted: the link knows the reason
  const ncclResult_t asked = ncclCommGetAsyncError(comm_, &state);
  return asked == ncclSuccess ? state : asked;
}

void Handle::settle(ncclResult_t result, std::string_view what, uint64_t count) {
  const auto begun = Clock::now();
  RunningDeadline deadline(link_->options().timeout, begun);
  while (result == ncclInProgress) {
    // The first connection takes long; launching an operation takes some microseconds.
    if (Clock::now() - begun > std::chrono::milliseconds(1)) {
      link_->changed_.wait_for(link_->mutex_, std::chrono::milliseconds(1));
    } else {
      const MutexUnlock unlock(link_->mutex_);
      std::this_thread::yield();
    }
    link_->throw_error();
    result = state();
    if (result != ncclInProgress || !deadline.passed()) continue;
    const std::vector<int> behind = members_behind(count);
    const Error error = behind.empty() ? stuck(what)
                                       : ranks_late_error(link_->group().name_of(behind),
                                                          link_->options().timeout.count());
    {
      const MutexUnlock unlock(link_->mutex_);
      link_->fail_and_report(error);
    }
    link_->throw_error();
  }
  if (result == ncclSuccess) return;
  link_->report(result, what, comm_);
  while (!link_->error_) link_->changed_.wait(link_->mutex_);
  link_->throw_error();
}

void Handle::launched(Stream& stream) {
  use_device(link_->device());
  const uint64_t count = link_->peer_monitor().begin_operation(id_);
  const MutexLock lock(link_->mutex_);
  link_->throw_error();
  times_.launched();
  track(stream_of(stream), count);
}

// If the ring is full, only its oldest work is watched.
void Handle::track(cudaStream_t stream, uint64_t count) {
  if (pending_count_ == pending_.size()) drop_completed_work();
  if (pending_count_ == pending_.size()) return;
  Pending& pending = pending_[(first_ + pending_count_) % pending_.size()];
  check(cudaEventRecord(pending.done, stream), "cudaEventRecord");
  pending.count = count;
  if (pending_count_++ == 0) moved_ = clock_.at(Clock::now());
}

void Handle::drop_completed_work() {
  while (pending_count_ > 0 && cudaEventQuery(pending_[first_].done) != cudaErrorNotReady) {
    first_ = (first_ + 1) % pending_.size();
    --pending_count_;
    moved_ = clock_.at(Clock::now());
    overdue_ = false;
  }
  cudaGetLastError();  // CUDA keeps "not ready" as the thread's last error
}

std::vector<int> Handle::members_gone() const {
  std::vector<int> gone;
  for (int member : members_) {
    if (link_->peer_monitor().has_left(member)) gone.push_back(member);
  }
  return gone;
}

std::vector<int> Handle::members_behind(uint64_t count) {
  busy_ = true;
  std::vector<int> behind;
  {
    const MutexUnlock unlock(link_->mutex_);
    behind = link_->peer_monitor().ranks_behind(members_, id_, count, kAnswerTime);
  }
  busy_ = false;
  link_->changed_.notify_all();
  return behind;
}

Error Handle::stuck(std::string_view what) const {
  const int64_t seconds = link_->options().timeout.count() / 1000;
  return Error(ErrorCode::kTimeout,
               std::string(what) + " did not end within " + std::to_string(seconds) +
                   " s, although no rank is behind",
               "communicator",
               "look for a hanging GPU or connection: NCCL_DEBUG=INFO shows more, "
               "NCCL_SOCKET_IFNAME names the interface; or raise comm.timeout");
}

void Handle::check_progress() {
  drop_completed_work();
  times_.collect();
  if (pending_count_ == 0) return;
  const auto waited = clock_.at(Clock::now()) - moved_;
  std::optional<Error> error;
  if (const auto gone = members_gone(); waited >= kGoodbyeTime && !gone.empty()) {
    error = rank_left_error(link_->group().name_of(gone));
  } else if (waited >= link_->options().timeout) {
    const std::vector<int> behind = members_behind(pending_[first_].count);
    if (!behind.empty()) {
      error = ranks_late_error(link_->group().name_of(behind), link_->options().timeout.count());
    } else if (overdue_) {
      error = stuck("a collective");
    } else {
      overdue_ = true;  // it may wait for this rank's own work: allow the same time once more
      moved_ = clock_.at(Clock::now());
    }
  }
  if (!error) return;
  Link& link = *link_;  // *this may be destroyed while the lock is not held
  const MutexUnlock unlock(link_->mutex_);
  link.fail_and_report(*error);
}

}  // namespace fleet::nccl
