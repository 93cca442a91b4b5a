#include "transport/control_messages.h"

namespace fleet {

wire::StopRequest stop_request(int signal, bool kill, Grace grace) {
  wire::StopRequest request;
  request.set_signal(signal);
  request.set_kill(kill);
  if (grace) request.set_grace_ms(static_cast<int>(grace->count()));
  return request;
}

wire::Failure to_wire(const Error& error) {
  wire::Failure failure;
  failure.set_code(static_cast<wire::Failure::Code>(error.code()));
  failure.set_what(error.failure());
  failure.set_where(error.where());
  failure.set_next(error.next());
  return failure;
}

Error from_wire(const wire::Failure& failure) {
  const bool known = wire::Failure::Code_IsValid(failure.code());
  return Error(known ? static_cast<ErrorCode>(failure.code()) : ErrorCode::kInternal,
               failure.what(), failure.where(), failure.next());
}
static_assert(static_cast<int>(ErrorCode::kUsage) == wire::Failure::USAGE &&
              static_cast<int>(ErrorCode::kTimeout) == wire::Failure::TIMEOUT &&
              static_cast<int>(ErrorCode::kPeerLost) == wire::Failure::PEER_LOST &&
              static_cast<int>(ErrorCode::kStale) == wire::Failure::STALE &&
              static_cast<int>(ErrorCode::kInternal) == wire::Failure::INTERNAL);

}  // namespace fleet
