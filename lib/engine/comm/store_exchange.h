// Exchanges of small values through the job's Store. Ranks need no connections to each other, so a
// process that takes the place of a lost one joins without the help of the others.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "comm/communicator.h"
#include "store/store.h"

namespace fleet {

// All ranks make the same exchanges, numbered from 0. The Store keeps the values until forget(), so
// an exchange can be made again. One thread at a time; abort() and on_wait() from any.
class StoreExchange {
 public:
  // timeout: how long an exchange waits for another rank. Time in which this process was suspended
  // does not count.
  StoreExchange(std::shared_ptr<Store> store, int rank, int size,
                std::chrono::milliseconds timeout);

  // The values of all ranks, by rank. If the process whose place this one takes has made this
  // exchange, its value counts, which others may have seen. kPeerLost naming a rank that will not
  // come (mark_as_gone), kTimeout naming one that has not come.
  std::vector<std::string> all(const std::string& own);
  int rank() const { return rank_; }
  int size() const { return size_; }
  int64_t next() const { return next_; }  // the number of the next exchange
  // This process takes the place of one that was lost: its exchanges from this number on may exist.
  void resume(int64_t next);
  // Drops this rank's values of exchanges below this number, which no rank may make again.
  void forget(int64_t before);
  // Pending and later calls throw `why`, within a second.
  void abort(const Error& why);
  // While an exchange waits for other ranks, its thread calls this function about twice a second;
  // null: none. Once this returns, the former function is not called again.
  void on_wait(std::function<void()> call);

 private:
  std::string key(int64_t number, int rank) const;
  std::string wait_for(int64_t number, int rank);
  void wait_on(int rank);

  const std::shared_ptr<Store> store_;
  const int rank_, size_;
  const std::chrono::milliseconds timeout_;
  int64_t next_ = 0, kept_ = 0;
  bool again_ = false;  // the next exchange may exist
  Mutex mutex_;
  std::optional<Error> aborted_ FLEET_GUARDED_BY(mutex_);
  std::function<void()> on_wait_ FLEET_GUARDED_BY(mutex_);
};

// Calls a function while its exchange waits, as long as this object lives.
class WhileWaiting {
 public:
  WhileWaiting(StoreExchange& exchange, std::function<void()> call) : exchange_(exchange) {
    exchange_.on_wait(std::move(call));
  }
  ~WhileWaiting() { exchange_.on_wait(nullptr); }
  WhileWaiting(const WhileWaiting&) = delete;

 private:
  StoreExchange& exchange_;
};

// Exchanges that wait for this rank end: it is lost, and nothing will take its place. May be called
// again, after an error of the Store.
void mark_as_gone(Store& store, int rank);
bool is_marked_as_gone(Store& store, int rank);

// A communicator of host memory for a few small values. Its parts are all of its ranks.
std::unique_ptr<Communicator> make_store_communicator(std::shared_ptr<StoreExchange> exchange);

}  // namespace fleet
