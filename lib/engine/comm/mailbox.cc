#include "comm/mailbox.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/error.h"

namespace fleet {

void send_message(Mailbox& to, const View& data, ControlBlock& control, int receiver) {
  size_t done = 0;
  do {
    const size_t bytes = std::min(Mailbox::kPieceBytes, data.bytes() - done);
    const uint64_t sent = to.sent.load(std::memory_order_relaxed);
    control.wait([&] { return sent - to.taken.load() < 2; }, receiver);
    std::memcpy(to.pieces[sent % 2], static_cast<char*>(data.data) + done, bytes);
    to.message_bytes[sent % 2] = data.bytes();
    to.sent.store(sent + 1);
    control.ring(receiver);
    done += bytes;
  } while (done < data.bytes());
}

void receive_message(Mailbox& from, const View& data, ControlBlock& control, const Group& group,
                     int sender) {
  size_t done = 0;
  do {
    const size_t bytes = std::min(Mailbox::kPieceBytes, data.bytes() - done);
    const uint64_t taken = from.taken.load(std::memory_order_relaxed);
    control.wait([&] { return from.sent.load() > taken; }, sender);
    const uint64_t message = from.message_bytes[taken % 2];
    if (message != data.bytes()) {
      throw control.fail_all(Error(ErrorCode::kInternal,
                                   group.name_of(sender) + " sends " + std::to_string(message) +
                                       " bytes, " + group.name_of(group.rank) + " expects " +
                                       std::to_string(data.bytes()),
                                   "communicator", "all ranks must run the same plan"));
    }
    std::memcpy(static_cast<char*>(data.data) + done, from.pieces[taken % 2], bytes);
    from.taken.store(taken + 1);
    control.ring(sender);
    done += bytes;
  } while (done < data.bytes());
}

}  // namespace fleet
