// Heartbeats as datagrams, which any host may send.
#include "tests/fuzz/fuzz.h"
#include "transport/datagram_heartbeats.h"

FLEET_FUZZ(datagram) {
  const std::string key(32, 'k');
  uint64_t claimed = 0;
  const auto heartbeat = fleet::decode_heartbeat(bytes, [&](uint64_t session) {
    claimed = session;
    return &key;
  });
  if (!heartbeat) return;
  fleet::fuzz::require(heartbeat->session() == claimed,
                       "a heartbeat is of the session that it claims");
  const std::string again = fleet::encode_heartbeat(*heartbeat, key);
  fleet::fuzz::require(fleet::decode_heartbeat(again, [&](uint64_t) { return &key; }).has_value(),
                       "a heartbeat as bytes is a heartbeat");
}
