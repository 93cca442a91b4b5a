// Messages between the launcher and its guardian over their socket pair: plain structs and their
// encoding. Both ends are the same binary, so the format carries no version.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "rendezvous/types.h"

namespace fleet {

inline constexpr int kStandardOutput = 1, kStandardError = 2;

// Options of the lines on standard output or standard error.
struct ConsoleStream {
  bool drop = false;    // drop lines while it is full; otherwise ranks wait
  int collapse_ms = 0;  // how long lines wait for equal ones of other ranks; 0: not at all

  bool operator==(const ConsoleStream&) const = default;
};

// Shown lines with one of these texts are also kept in this file.
struct CopiedLines {
  std::string path;
  std::vector<std::string> filters;  // empty: no line is kept

  bool operator==(const CopiedLines&) const = default;
};

// How the output of this node's ranks is kept and shown.
struct LogSettings {
  bool overwrite = false;      // overwrite logs of earlier runs; else append
  bool stamp_files = false;    // begin each line of the files with the time
  bool stamp_console = false;  // the same on the console
  bool labels = false;         // lines on the console begin with "[rank 3]"
  std::string node;            // added to labels if not empty
  ConsoleStream output, errors;
  bool errors_apart = false;  // standard error and standard output lead to different places
  int64_t max_size = 0;       // bytes per log file, then another begins; 0: no limit
  int64_t total_size = 0;     // bytes of all files, then the oldest are removed; 0: no limit
  CopiedLines output_copies, error_copies;

  bool operator==(const LogSettings&) const = default;
};

// One rank to start.
struct RankCommand {
  int local_rank = 0;
  int rank = 0;                   // in the job
  std::vector<std::string> argv;  // argv[0]: a path, already looked up
  // Set in addition to the guardian's own.
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> removed;  // names removed from it
  std::vector<int> cores;            // cores to pin to; empty: not pinned
  std::string log_path;              // of its output; empty: not kept
  bool splits_streams = false;       // standard error has a separate log:
  std::string error_log_path;        // empty: not kept
  std::string error_file;            // where the program may record its failure; empty: nowhere
  std::string label;                 // prefix of labelled lines; empty: "[rank 3] "
  int labelled_streams = 3;          // streams with a label; others are shown unchanged
  int shown_streams = 0;             // streams that also go to the console: kStandardOutput | ...
  bool shows_apart = false;          // each shown stream has its own destination
  bool draws_bar = false;            // it draws a progress bar on the console, kept out of the file
  int hang_timeout_ms = 0;           // without progress for this long it hangs; 0: not watched
  bool service_socket = false;       // it gets a socket to its node's launcher (rank_service.h)

  // Whether standard output and error must be kept apart.
  bool two_streams() const {
    return splits_streams || shown_streams == kStandardOutput || shown_streams == kStandardError ||
           (shown_streams != 0 && shows_apart);
  }

  bool operator==(const RankCommand&) const = default;
};

// --- launcher to guardian ---

// Start these ranks. Sent again only after AllGone.
struct SpawnRanks {
  std::vector<RankCommand> ranks;
  LogSettings logs;
  bool operator==(const SpawnRanks&) const = default;
};
// Send `signal` to every rank's process group; after the grace time kill every descendant.
struct StopRanks {
  int signal = 0;
  int grace_ms = 0;
  bool operator==(const StopRanks&) const = default;
};
// Send `signal` to every rank's own process; nothing else changes.
struct SignalRanks {
  int signal = 0;
  bool operator==(const SignalRanks&) const = default;
};
// Answer with StacksCollected, within limit_ms.
struct CollectStacks {
  int limit_ms = 0;
  bool operator==(const CollectStacks&) const = default;
};
// Kill every descendant now.
struct KillRanks {
  bool operator==(const KillRanks&) const = default;
};

// --- both ways ---

// Bytes that a rank wrote to its service socket, or will read there.
struct ServiceBytes {
  int local_rank = 0;
  std::string bytes;
  bool operator==(const ServiceBytes&) const = default;
};

// --- guardian to launcher ---

// A rank runs, or could not be started (`error` is not empty; it counts as ended).
struct RankStarted {
  int local_rank = 0;
  int pid = 0;
  std::string error;
  bool operator==(const RankStarted&) const = default;
};
// A rank ended.
struct RankEnded {
  int local_rank = 0;
  int code = 0;            // exit code, if signal is 0
  int signal = 0;          // the signal that ended it, or 0
  std::string tail;        // the last lines of its log, with their colours
  std::string cause;       // as in RankExit
  std::string note;        // the kernel's information about its end
  bool oom = false;        // killed because memory ran out
  int64_t at_ns = 0;       // when, on this node's steady clock
  bool stop_sent = false;  // the guardian had sent it a stop signal before
  RecordedError error;     // its own record of its failure
  bool operator==(const RankEnded&) const = default;
};
// Progress of the ranks that report it (observe/rank_progress.h): every second if it has changed,
// and before the RankEnded of one of them.
struct LocalProgress {
  int local_rank = 0;
  int64_t steps = 0, step = 0;
  int64_t step_at_ns = 0, waited_ns = 0;
  bool operator==(const LocalProgress&) const = default;
};
struct RanksProgress {
  std::vector<LocalProgress> ranks;
  bool operator==(const RanksProgress&) const = default;
};
// A rank makes no progress.
struct RankStalled {
  int local_rank = 0;
  int quiet_ms = 0;
  int64_t step = -1;  // the last finished step; -1: not reported
  bool operator==(const RankStalled&) const = default;
};
// What a rank is doing, as in RankStack.
struct LocalStack {
  int local_rank = 0;
  std::string state;  // one character
  std::string channel;
  std::vector<std::string> frames;
  std::string missing;
  bool operator==(const LocalStack&) const = default;
};
struct StacksCollected {
  std::vector<LocalStack> stacks;
  bool operator==(const StacksCollected&) const = default;
};
// No process of the ranks is left on this node, and their output is written. The guardian then
// waits for the next ranks and ends when the launcher closes the socket.
struct AllGone {
  std::string stuck;  // processes that could not be killed, a line each; normally empty
  bool operator==(const AllGone&) const = default;
};

using WireMessage =
    std::variant<SpawnRanks, StopRanks, KillRanks, SignalRanks, CollectStacks, ServiceBytes,
                 RankStarted, RankEnded, RanksProgress, RankStalled, StacksCollected, AllGone>;

// The bytes of one message after a four-byte length.
std::string encode(const WireMessage& message);
// Takes one whole message off the front of `buffer`; false if it holds none yet. Throws kInternal
// if the bytes are not a message.
bool decode(std::string& buffer, WireMessage* message);

}  // namespace fleet
