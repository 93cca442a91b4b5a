// The one exception type of fleetrun. Exceptions of other libraries are translated into it where
// they enter.
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
  kStale,        // belongs to an epoch of the job that is over
  kIo,           // the operating system refused a file or socket operation
  kInternal,     // a bug of ours
  kNoMemory,     // the device has not as much memory as is wanted
};

const char* name_of(ErrorCode code);

// what(): "<where>: <what>; <next>", the parts that are empty left out.
//   what   what failed, in one clause
//   where  on whom: a file and line, a flag, a rank, a host
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

// What a rank ends with that fails only because it lost another (kPeerLost): the rendezvous then
// waits a moment for the cause.
inline constexpr int kExitPeerLost = 114;

// The exit code a program ends with for an error of this kind: 2 for kUsage, kUnsupported,
// kNoMemory and kNotFound, kExitPeerLost for kPeerLost, else 1.
int exit_code_for(ErrorCode code);

// Throws kInternal naming the place: for what can only be a bug of ours.
[[noreturn]] void internal_error(const char* file, int line, const std::string& what);
#define FLEET_CHECK(condition, what)                                     \
  do {                                                                   \
    if (!(condition)) ::fleet::internal_error(__FILE__, __LINE__, what); \
  } while (0)

}  // namespace fleet
