// The work of parameter servers, and the trainers' use of them, for the launcher: in the memory of
// their progress (rank_progress.h). All numbers are totals of a process, unless stated otherwise;
// times are in nanoseconds, and bytes count payloads.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "observe/shared_memory.h"

namespace fleet {

// A text that is cut to its size.
template <size_t kSize>
struct ShortText {
  std::array<char, kSize> bytes{};  // zeros behind the text

  void set(std::string_view text) {
    bytes = {};
    text.copy(bytes.data(), kSize);
  }
  std::string_view view() const {
    const std::string_view all(bytes.data(), kSize);
    return all.substr(0, all.find('\0'));
  }
  bool operator==(const ShortText&) const = default;
};

enum class ServerState : int64_t {
  kStarting = 0,  // not all trainers have connected, or it has no values yet
  kServing,
  kSaving,  // serves, and writes tables
  kEnding,  // some trainers have said goodbye
};

// A server's part of a sparse table.
struct TableProgress {
  ShortText<40> name;
  int64_t rows = 0, bytes = 0;     // now
  int64_t pulled = 0, pushed = 0;  // rows

  bool operator==(const TableProgress&) const = default;
};

struct ServerProgress {
  // Tables behind the last but one count together, as "others".
  static constexpr int kMaxTables = 16;

  int64_t at_ns = 0;  // when it was made, CLOCK_MONOTONIC; 0: none
  ServerState state = ServerState::kStarting;
  int64_t apart = 0;   // 1: trainers do not wait for each other
  int64_t blocks = 0;  // dense blocks
  int64_t bytes = 0;   // their values and states, in memory
  int64_t pushes = 0;  // gradients, without those of rows
  int64_t pulls = 0;   // requests for values, without those of rows
  int64_t received = 0, sent = 0;
  int64_t busy = 0;       // handling messages
  int64_t waited = 0;     // with a part of the pushes of a step, for the others
  int64_t steps = -1;     // the slowest trainer's; -1: no values yet
  int64_t ahead = 0;      // steps of the fastest trainer beyond these, now
  int64_t queued = 0;     // messages that wait to be handled, now
  int64_t tables = 0;     // those that count, in `table`
  ShortText<64> address;  // as its trainers reach it
  std::array<TableProgress, kMaxTables> table{};

  bool operator==(const ServerProgress&) const = default;
};

// A trainer's use of servers, in training steps.
struct ServerUse {
  // Answers of servers behind these are not measured.
  static constexpr int kMaxServers = 64;

  int64_t updates = 0;  // 0: it uses none
  int64_t servers = 0;
  int64_t pushes = 0, pulls = 0;  // messages to all servers; pulls also of rows
  int64_t sent = 0, received = 0;
  // The training thread waits: to push (for a queue that is full), for values, for rows.
  int64_t push_wait = 0, values_wait = 0, rows_wait = 0;
  int64_t queued = 0;    // sum over the updates: pushes in the queue
  int64_t capacity = 0;  // the queue's limit; 0: none
  int64_t stale = 0;     // sum over the updates: own steps beyond those of the slowest trainer in
                         // the values that it uses
  int64_t most_stale = 0;
  // Time with a request to this server that is not answered yet.
  std::array<int64_t, kMaxServers> answer{};

  bool operator==(const ServerUse&) const = default;
};

// A process's end. Calls do nothing without a launcher. For one thread each.
class ServerProgressWriter {
 public:
  static ServerProgressWriter from_env();
  ServerProgressWriter() = default;
  explicit ServerProgressWriter(const std::string& path);

  void publish(const ServerProgress& progress);
  void publish(const ServerUse& use);

 private:
  SharedMemory memory_;
};

}  // namespace fleet
