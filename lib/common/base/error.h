// The one exception type of fleetrun. Exceptions of other libraries are translated into it where
// they enter our code.
#pragma once

#include <stdexcept>
#include <string>

namespace fleet {

enum class ErrorCode {
  kUsage,     // bad flag, job file, list file, data: the user must change something (exit code 2)
  kNotFound,  // a file, key, kernel or registered name that does not exist
  kUnsupported,  // understood, but this build or machine cannot do it
  kTimeout,      // a deadline passed
  kPeerLost,     // another rank or node died, hung or was aborted
  kStale,        // belongs to a generation of the job that is over
  kIo,           // the operating system refused a file or socket operation
  kInternal,     // a bug in fleetrun
  kNoMemory,     // the device does not have enough memory
};

const char* name_of(ErrorCode code);

// what(): "<where>: <what>; <next>", without the parts that are empty.
//   what   what failed, in one clause
//   where  what it failed on: a file and line, a flag, a rank, a host
//   next   what the user should do about it
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, std::string what, std::string where = {}, std::string next = {});
  ErrorCode code() const { return code_; }
  const std::string& failure() const { return failure_; }
  const std::string& where() const { return where_; }
  const std::string& next() const { return next_; }

 private:
  ErrorCode code_;
  std::string failure_, where_, next_;
};

// Exit code of a rank that fails only because it lost another rank (kPeerLost): the rendezvous then
// waits briefly for the root cause.
inline constexpr int kExitPeerLost = 114;

// The exit code for an error of this kind: 2 for kUsage, kUnsupported, kNoMemory and kNotFound,
// kExitPeerLost for kPeerLost, else 1.
int exit_code_for(ErrorCode code);

// Throws kInternal naming the source location: for errors that only a bug in fleetrun can cause.
[[noreturn]] void internal_error(const char* file, int line, const std::string& what);
#define FLEET_CHECK(condition, what)                                     \
  do {                                                                   \
    if (!(condition)) ::fleet::internal_error(__FILE__, __LINE__, what); \
  } while (0)

}  // namespace fleet
