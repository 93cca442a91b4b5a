// The collectives of a rank, in memory shared with its launcher: the last 512 calls with their
// group and number, and how far the rank is in each group. The launcher can read it when the rank
// hangs, is stopped or has gone (collective_log_reader.h).
//
// Every communicator of comm/factory.h records its calls here (comm/recorded_communicator.h), and
// so does whatever is split from it. To follow the calls within the process, as a tracer does:
//
//   struct Tracer : CollectiveListener { void started(const CollectiveRecord& call) override ... };
//   CollectiveLog::of_process().set_listener(&tracer);
//
// The k-th call of a group on one rank meets the k-th call of the same group on the others. Match
// calls of different ranks by (CollectiveGroup::name, ranks, ordinal, CollectiveRecord::sequence);
// messages (send and recv) also by their sender and receiver, which have numbers of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "observe/shared_memory.h"

namespace fleet {

// The variable in which the launcher passes the file to map.
inline constexpr char kEnvCollectivesFile[] = "FLEET_COLLECTIVES_FILE";

enum class CollectiveKind : int32_t {
  kAllReduce,
  kReduce,
  kBroadcast,
  kAllGather,
  kReduceScatter,
  kSend,
  kRecv,
  kBarrier,
};
std::string_view name_of(CollectiveKind kind);  // "all_reduce"

enum class CollectiveState {
  kIssued,   // by the host; on a GPU all that is known
  kStarted,  // the stream has reached it: it communicates, or waits for other ranks
  kDone,
};

// A text of fixed size without a terminator if it is full; longer ones are cut.
template <size_t kSize>
struct FixedText {
  char bytes[kSize] = {};
  FixedText() = default;
  FixedText(std::string_view text) {  // NOLINT(google-explicit-constructor)
    text.copy(bytes, kSize);
  }
  std::string_view view() const {
    const std::string_view all(bytes, kSize);
    return all.substr(0, all.find('\0'));
  }
  bool operator==(const FixedText&) const = default;
};

// Purpose of a call: "bucket 4", or the name of a variable.
using CollectivePurpose = FixedText<56>;

struct CollectiveRecord {
  uint64_t group = 0;    // CollectiveGroup::id
  int64_t sequence = 0;  // from 1 in its group; of messages: from 1 for each sender and receiver
  int64_t bytes = 0;     // this rank's part, as given to the call
  CollectiveKind kind = CollectiveKind::kAllReduce;
  int32_t peer = -1;  // rank of the job: a root, or the other end of a message; else -1
  CollectivePurpose purpose;
  // CLOCK_MONOTONIC; valid from the state on that they are named after.
  int64_t issued_ns = 0, started_ns = 0, done_ns = 0;
  CollectiveState state = CollectiveState::kIssued;
};

// Ranks first, first + step, ...; `count` of them.
struct RankRun {
  int32_t first = 0, step = 1, count = 0;
};
// Groups are regular: ranks 0, 4, 8 are one run.
std::vector<RankRun> runs_of(const std::vector<int>& ranks);

// One communicator.
struct CollectiveGroup {
  uint64_t id = 0;         // within the process; never used again
  std::string name;        // as the strategy calls it: "data parallel"; at most 48 bytes
  std::vector<int> ranks;  // ranks of the job, in the order of the group
  int ordinal = 0;         // among the groups with this name and these ranks, from 0
  bool device = false;     // on a GPU: calls stay kIssued
  bool closed = false;     // the rank has destroyed it
  // The last call of the whole group (no message) in each state; 0: none.
  int64_t issued = 0, started = 0, done = 0;
};

// A call that has been issued: what start() and finish() need of it.
struct CollectiveTicket {
  uint64_t number = 0;
  int64_t sequence = 0;  // 0: a message
  int group = -1;
};

// Hears of each call as it happens, on the thread where it happens: calls may come from several
// threads at once. Must not throw and should not allocate.
class CollectiveListener {
 public:
  virtual ~CollectiveListener() = default;
  // When the host issues it; at each launch of a recording (CUDA graph) for each call in it.
  virtual void issued(const CollectiveRecord& /*call*/) {}
  // On the stream's thread. Not for a GPU: record events of its streams instead.
  virtual void started(const CollectiveRecord& /*call*/) {}
  virtual void done(const CollectiveRecord& /*call*/) {}  // not if it failed
};

// The rank's end. Thread-safe; issue(), start() and finish() take no lock and allocate nothing.
class CollectiveLog {
 public:
  // The log that the launcher reads; without a launcher, one that only this process sees.
  static CollectiveLog& of_process();
  // path: CollectiveLogReader::path(). Empty, or a file that is none: memory of its own.
  explicit CollectiveLog(const std::string& path = {});

  // Takes a lock. The ranks of a group must add it at the same position among the groups with its
  // name and ranks. Returns its handle; -1 if there are too many groups: their calls are recorded
  // without a name.
  int add_group(const std::string& name, const std::vector<int>& ranks, bool device);
  void rename_group(int group, const std::string& name);
  void close_group(int group);
  CollectiveGroup group(int group) const;
  CollectiveGroup group_with_id(uint64_t id) const;  // id 0: not known

  // The caller sets sequence, bytes, kind, peer and purpose.
  CollectiveTicket issue(int group, const CollectiveRecord& call);
  void start(const CollectiveTicket& ticket);
  void finish(const CollectiveTicket& ticket);

  // One at a time; null: none. It must outlive the calls that began before it was replaced.
  void set_listener(CollectiveListener* listener) { listener_ = listener; }

 private:
  void advance(const CollectiveTicket& ticket, CollectiveState state);

  SharedMemory memory_;
  std::atomic<CollectiveListener*> listener_{nullptr};
  mutable Mutex mutex_;
  uint64_t next_id_ FLEET_GUARDED_BY(mutex_) = 1;
  std::map<std::pair<std::string, std::vector<int>>, int> ordinals_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet
