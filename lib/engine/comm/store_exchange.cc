#include "comm/store_exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/clock.h"
#include "base/running_clock.h"
#include "comm/group.h"
#include "comm/recorded_communicator.h"
#include "comm/reduce.h"
#include "tensor/host.h"

namespace fleet {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstLook{100}, kLook{500};  // at other reasons to end a wait

std::string gone_key(int rank) { return "apart/gone/" + std::to_string(rank); }

}  // namespace

void mark_as_gone(Store& store, int rank) { store.set(gone_key(rank), "1"); }

// Unlike add(), get() and set() survive a suspension of this process, after which the Store may
// have closed its connection.
bool is_marked_as_gone(Store& store, int rank) {
  try {
    store.get(gone_key(rank), milliseconds(1));
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kTimeout) throw;
    return false;
  }
}

StoreExchange::StoreExchange(std::shared_ptr<Store> store, int rank, int size, milliseconds timeout)
    : store_(std::move(store)), rank_(rank), size_(size), timeout_(timeout) {}

std::string StoreExchange::key(int64_t number, int rank) const {
  return "apart/" + std::to_string(number) + "/" + std::to_string(rank);
}

std::string StoreExchange::wait_for(int64_t number, int rank) {
  RunningDeadline deadline(timeout_);
  for (milliseconds look = kFirstLook;; look = kLook) {
    const bool late = deadline.passed();
    const milliseconds longest = std::min(look, deadline.look_for());
    try {
      return store_->get(key(number, rank), std::max(longest, milliseconds(1)));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
    }
    wait_on(rank);
    if (!late) continue;
    throw Error(ErrorCode::kTimeout, "did not come to the others within " + seconds_text(timeout_),
                "rank " + std::to_string(rank), "see its log, or raise comm.timeout");
  }
}

// Throws what ends the wait.
void StoreExchange::wait_on(int rank) {
  {
    const MutexLock lock(mutex_);
    if (aborted_) throw *aborted_;
    if (on_wait_) on_wait_();
  }
  if (!is_marked_as_gone(*store_, rank)) return;
  throw Error(ErrorCode::kPeerLost, "has ended, and no process takes its place",
              "rank " + std::to_string(rank), "see its log");
}

std::vector<std::string> StoreExchange::all(const std::string& own) {
  const int64_t number = next_;
  std::vector<std::string> values(static_cast<size_t>(size_));
  std::string& mine = values[static_cast<size_t>(rank_)] = own;
  if (again_) {
    try {
      mine = store_->get(key(number, rank_), milliseconds(1));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
      again_ = false;  // nor do later ones
    }
  }
  if (!again_) store_->set(key(number, rank_), own);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_) values[static_cast<size_t>(rank)] = wait_for(number, rank);
  }
  ++next_;
  return values;
}

void StoreExchange::resume(int64_t next) {
  next_ = kept_ = next;
  again_ = true;
}

// The Store cannot remove keys.
void StoreExchange::forget(int64_t before) {
  for (; kept_ < before; ++kept_) store_->set(key(kept_, rank_), "");
}

void StoreExchange::abort(const Error& why) {
  const MutexLock lock(mutex_);
  if (!aborted_) aborted_ = why;
}

void StoreExchange::on_wait(std::function<void()> call) {
  const MutexLock lock(mutex_);
  on_wait_ = std::move(call);
}

namespace {

std::string bytes_of(const View& view) { return {view.at(0), view.bytes()}; }

void copy_to(const View& out, const std::string& bytes) {
  FLEET_CHECK(bytes.size() == out.bytes(), "a value of another size");
  std::memcpy(out.data, bytes.data(), bytes.size());
}

Group whole_group(const StoreExchange& exchange) {
  Group group{.rank = exchange.rank(), .size = exchange.size()};
  group.names.resize(static_cast<size_t>(exchange.size()));
  std::iota(group.names.begin(), group.names.end(), 0);
  return group;
}

class StoreCommunicator : public HostCommunicator {
 public:
  explicit StoreCommunicator(std::shared_ptr<StoreExchange> exchange)
      : HostCommunicator(whole_group(*exchange)), exchange_(std::move(exchange)) {}

  std::string name() const override { return "store"; }
  Buffer allocate(size_t bytes) override { return HostDevice().allocate(bytes); }
  std::unique_ptr<Communicator> split(std::span<const int> ranks) override {
    FLEET_CHECK(std::ssize(ranks) == size() && std::ranges::is_sorted(ranks),
                "a part of the trainers of a job whose trainers run apart");
    return std::make_unique<StoreCommunicator>(exchange_);
  }
  void abort(const Error& why) override { exchange_->abort(why); }

  void do_all_reduce(View in, View out, ReduceOp op) override {
    reduce(exchange_->all(bytes_of(in)), out, op);
  }
  void do_reduce(View in, View out, ReduceOp op, int root) override {
    const std::vector<std::string> values = exchange_->all(bytes_of(in));
    if (rank() == root) reduce(values, out, op);
  }
  void do_broadcast(View data, int root) override {
    const std::string own = rank() == root ? bytes_of(data) : std::string();
    copy_to(data, exchange_->all(own)[static_cast<size_t>(root)]);
  }
  void do_all_gather(View in, View out) override {
    size_t begin = 0;
    for (const std::string& value : exchange_->all(bytes_of(in))) {
      copy_to(out.part(begin, in.count), value);
      begin += in.count;
    }
  }
  void do_reduce_scatter(View in, View out, ReduceOp op) override {
    std::vector<std::string> values = exchange_->all(bytes_of(in));
    for (std::string& value : values) {
      value = value.substr(static_cast<size_t>(rank()) * out.bytes(), out.bytes());
    }
    reduce(values, out, op);
  }
  void do_send(View, int) override { refuse(); }
  void do_recv(View, int) override { refuse(); }
  void do_barrier() override { exchange_->all(""); }

 private:
  static void reduce(const std::vector<std::string>& values, const View& out, ReduceOp op) {
    std::vector<const void*> in;
    for (const std::string& value : values) {
      FLEET_CHECK(value.size() == out.bytes(), "a value of another size");
      in.push_back(value.data());
    }
    void* const to = out.data;
    reduce_elements(out.dtype, op, &to, 1, in.data(), static_cast<int>(in.size()), out.count);
  }
  [[noreturn]] static void refuse() {
    throw Error(ErrorCode::kInternal, "a message between trainers that run apart");
  }

  const std::shared_ptr<StoreExchange> exchange_;
};

}  // namespace

std::unique_ptr<Communicator> make_store_communicator(std::shared_ptr<StoreExchange> exchange) {
  const std::vector<int> ranks = whole_group(*exchange).names;
  return std::make_unique<RecordedCommunicator>(
      std::make_unique<StoreCommunicator>(std::move(exchange)), "job", ranks, /*device=*/false);
}

}  // namespace fleet
