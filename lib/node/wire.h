// What the launcher and its guardian say to each other over their socket pair: plain structs and
// their bytes. Both ends are the same binary, so the format carries no version.
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

// How lines are shown on standard output, or on standard error.
struct ShownStream {
  bool drop = false;    // lines that it does not take when full; else ranks wait for it
  int collapse_ms = 0;  // how long lines wait for equal ones of other ranks; 0: not

  bool operator==(const ShownStream&) const = default;
};

// Shown lines with one of these texts are kept in this file as well.
struct CopiedLines {
  std::string path;
  std::vector<std::string> filters;  // none: no line is

  bool operator==(const CopiedLines&) const = default;
};

// How the output of this node's ranks is kept and shown.
struct LogSettings {
  bool overwrite = false;      // logs of earlier runs; else appended to
  bool stamp_files = false;    // each line there begins with the time
  bool stamp_console = false;  // and here
  bool labels = false;         // lines on the console begin with "[rank 3]"
  std::string node;            // in labels too, where not empty
  ShownStream output, errors;
  bool errors_apart = false;  // standard error is another place than standard output
  int64_t max_size = 0;       // bytes of a log file, then another is begun; 0: no bound
  int64_t total_size = 0;     // of all of them, then the oldest are removed; 0: no bound
  CopiedLines output_copies, error_copies;

  bool operator==(const LogSettings&) const = default;
};

// One rank to start.
struct RankCommand {
  int local_rank = 0;
  int rank = 0;                   // in the job
  std::vector<std::string> argv;  // argv[0]: a path, already looked up
  std::vector<std::pair<std::string, std::string>> environment;  // set over the guardian's own
  std::vector<std::string> removed;                              // names taken out of it
  std::vector<int> cores;                                        // pinned to; empty: not pinned
  std::string log_path;         // of what it writes; empty: that is kept nowhere
  bool splits_streams = false;  // standard error has another one:
  std::string error_log_path;   // empty: that is kept nowhere
  std::string error_file;       // where the program may record its failure; empty: nowhere
  std::string label;            // before its lines, where they have one; empty: "[rank 3] "
  int labelled_streams = 3;     // which of them have one; others are shown as they are
  int shown_streams = 0;        // what goes to the console as well: kStandardOutput | ...
  bool shows_apart = false;     // there each to its own place
  bool draws_bar = false;       // there, which the file does not want
  int hang_timeout_ms = 0;      // without progress for this long it hangs; 0: not watched
  bool service_socket = false;  // it gets a socket to its node's launcher (rank_service.h)

  // Whether standard output and error must be told apart.
  bool two_streams() const {
    return splits_streams || shown_streams == kStandardOutput || shown_streams == kStandardError ||
           (shown_streams != 0 && shows_apart);
  }

  bool operator==(const RankCommand&) const = default;
};

// --- launcher to guardian ---

// Start these ranks. Again only after AllGone.
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
// Send `signal` to every rank's own process, and go on.
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

// What a rank wrote to its service socket, or is to read there.
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
  int code = 0;               // exit code, where signal is 0
  int signal = 0;             // the signal that ended it, or 0
  std::string tail;           // the last lines of its log, with their colours
  std::string cause;          // as in RankExit
  std::string note;           // what the kernel knows about its end
  bool oom = false;           // it was killed for lack of memory
  int64_t at_ns = 0;          // when, on this node's steady clock
  bool told_to_stop = false;  // the guardian had told it to stop before
  RecordedError error;        // what it recorded of its failure
  bool operator==(const RankEnded&) const = default;
};
// How far the ranks have come that say so (observe/rank_progress.h): every second where that has
// changed, and before the RankEnded of one of them.
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
  int64_t step = -1;  // the last one that it did; -1: it does not say
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
// Nothing of the ranks is left on this node, and their output is written. The guardian then waits
// for the next ones, and ends when the launcher closes the socket.
struct AllGone {
  std::string stuck;  // processes that could not be killed, a line each; normally empty
  bool operator==(const AllGone&) const = default;
};

using WireMessage =
    std::variant<SpawnRanks, StopRanks, KillRanks, SignalRanks, CollectStacks, ServiceBytes,
                 RankStarted, RankEnded, RanksProgress, RankStalled, StacksCollected, AllGone>;

// The bytes of one message, behind a four-byte length.
std::string encode(const WireMessage& message);
// Takes one whole message off the front of `buffer`; false where it holds none yet. kInternal where
// the bytes are no message.
bool decode(std::string& buffer, WireMessage* message);

}  // namespace fleet
