// Heartbeats as datagrams, which anybody may send.
#include "rendezvous/datagram_heartbeats.h"
#include "tests/fuzz/fuzz.h"

FLEET_FUZZ(datagram) {
  const std::string key(32, 'k');
  const uint64_t session = fleet::claimed_session(bytes);
  fleet::DatagramBeat beat;
  if (!fleet::decode_beat(bytes, key, &beat)) return;
  fleet::fuzz::require(beat.session == session, "a beat is of the session that it claims");
  fleet::fuzz::require(fleet::encode_beat(beat, key) == bytes, "a beat as bytes is that beat");
}
