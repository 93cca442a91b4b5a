#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/clock.h"
#include "comm/group.h"

namespace fleet {

void SerializedError::set(const Error& error) {
  code = static_cast<uint32_t>(error.code());
  char* at = text;
  for (const std::string* part : {&error.failure(), &error.where(), &error.next()}) {
    const size_t room = text + sizeof text - at;
    const size_t length = std::min(part->size(), room > 3 ? room - 3 : 0);
    std::memcpy(at, part->data(), length);
    at[length] = 0;
    at += length + 1;
  }
}

Error SerializedError::get() const {
  const std::string failure = text;
  const char* at = text + failure.size() + 1;
  const std::string where = at;
  at += where.size() + 1;
  return Error(static_cast<ErrorCode>(code), failure, where, at);
}

Error error_for_peers(const Error& why, const Group& group) {
  if (why.code() == ErrorCode::kPeerLost || why.code() == ErrorCode::kTimeout) return why;
  return Error(ErrorCode::kPeerLost, group.name_of(group.rank) + " gave up: " + why.what(),
               "communicator", "look at the log of that rank");
}

Error rank_left_error(const std::string& names) {
  return Error(ErrorCode::kPeerLost, names + " left the group", "communicator",
               "look at the log of that rank");
}

Error ranks_late_error(const std::string& names, int64_t milliseconds) {
  const std::string time = seconds_text(std::chrono::milliseconds(milliseconds));
  return Error(ErrorCode::kTimeout, names + " did not arrive within " + time, "communicator",
               "find out what it is doing (fleetrun stacks), or raise comm.timeout");
}

}  // namespace fleet
