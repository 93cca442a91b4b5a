// Heartbeats as datagrams, which anybody may send.
#include "rendezvous/datagram_heartbeats.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(datagram) {
  const std::string key(32, 'k');
  const uint64_t session = fleet::claimed_session(bytes);
  fleet::DatagramHeartbeat heartbeat;
  if (!fleet::decode_heartbeat(bytes, key, &heartbeat)) return;
  fleet::fuzz::require(heartbeat.session == session,
                       "a heartbeat is of the session that it claims");
  fleet::fuzz::require(fleet::encode_heartbeat(heartbeat, key) == bytes,
                       "a heartbeat as bytes is that heartbeat");
}
