#include "ps/transport/stream_connection.h"

#include <span>

#include "base/clock.h"
#include "ps/transport/receive_memory.h"

namespace fleet::ps {
namespace {

using SteadyClock = std::chrono::steady_clock;

// After the end of a connection, for the transport to release the memory of its sender.
constexpr std::chrono::milliseconds kReleaseTimeout{5'000};

SteadyClock::time_point after(std::chrono::milliseconds timeout) {
  const auto now = SteadyClock::now();
  return timeout < SteadyClock::time_point::max() - now ? now + timeout
                                                        : SteadyClock::time_point::max();
}

}  // namespace

StreamConnection::StreamConnection(std::string peer, ConnectionHandler& handler)
    : inbox_(handler, [this] { start_receiving(); }),
      peer_(std::move(peer)),
      assembler_(ReceiveMemory::shared(),
                 {[this](Message message) { on_message(std::move(message)); },
                  [this](FrameKind kind) { on_control(kind); }}) {}

void StreamConnection::send(Message message) {
  outgoing_->push(std::move(message));
  start_sending();
}

bool StreamConnection::wait_until_unsent(size_t bytes, std::chrono::milliseconds timeout) {
  return outgoing_->wait_until_unsent(bytes, timeout);
}

void StreamConnection::close() {
  outgoing_->close();
  start_sending();
}

bool StreamConnection::disconnect(std::chrono::milliseconds timeout) {
  const auto deadline = after(timeout);
  close();
  if (inbox_.wait_until_finished(deadline) && outgoing_->wait_until_ended(deadline)) return true;
  break_off(Error(ErrorCode::kTimeout, "did not receive everything within " + seconds_text(timeout),
                  peer_, "check whether that process is stopped or overloaded"));
  inbox_.wait_until_finished(SteadyClock::time_point::max());
  outgoing_->wait_until_unsent(0, kReleaseTimeout);
  return false;
}

void StreamConnection::break_off(const Error& why) {
  outgoing_->end();  // first, so that wait_until_unsent() fails within closed()
  inbox_.finish(why);
  abandon();
}

void StreamConnection::ended(const std::string& reason) {
  outgoing_->end();
  inbox_.finish(Error(ErrorCode::kPeerLost, "the connection is lost (" + reason + ")", peer_,
                      "look at the log of that process"));
}

bool StreamConnection::feed(std::span<const std::byte> bytes) {
  received_ += static_cast<int64_t>(bytes.size());
  try {
    assembler_.feed(bytes);
    return true;
  } catch (const Error& error) {
    break_off(Error(error.code(), error.failure(), peer_, error.next()));
    return false;
  }
}

void StreamConnection::on_message(Message message) {
  if (expects_open_) throw Error(ErrorCode::kUsage, "a message before the first frame");
  inbox_.push(std::move(message));
}

void StreamConnection::on_control(FrameKind kind) {
  if ((kind == FrameKind::kOpen) != expects_open_) {
    throw Error(ErrorCode::kUsage, "the first frame is missing or repeated");
  }
  if (std::exchange(expects_open_, false)) return on_opened();
  close_received_ = true;
  // The answer tells the other end that everything has arrived.
  outgoing_->close();
  inbox_.finish(std::nullopt);
  start_sending();
}

}  // namespace fleet::ps
