#include "ps/transport/shared_memory.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/small_file.h"
#include "base/thread.h"

namespace fleet::ps {
namespace {

// How much the reader takes at once, and the writer shows at once.
constexpr size_t kPieceBytes = 128 << 10;
// A frame of at most this size is written by the sender's own thread, if it can be at once.
constexpr size_t kSmallFrame = 64 << 10;

SharedRing& ring_of(const fleet::Segment& memory, int index) {
  return *reinterpret_cast<SharedRing*>(memory.data() + index * SharedRing::kBytes);
}

}  // namespace

std::string host_identity() {
  return small_file("/proc/sys/kernel/random/boot_id") + "." + std::to_string(::geteuid());
}

SharedConnection::SharedConnection(std::string peer, ConnectionHandler& handler, UniqueFd socket,
                                   std::shared_ptr<fleet::Segment> memory, bool is_client)
    : StreamConnection(std::move(peer), handler),
      socket_(std::move(socket)),
      memory_(std::move(memory)),
      out_(ring_of(*memory_, is_client ? 0 : 1)),
      in_(ring_of(*memory_, is_client ? 1 : 0)) {}

void SharedConnection::begin(bool call_opened) {
  const auto self = std::static_pointer_cast<SharedConnection>(shared_from_this());
  // The reading thread calls the handler, so that a message costs no change of threads.
  const bool started =
      start_detached([self] { self->write_all(); }) && start_detached([self, call_opened] {
        self->inbox_.start(self, call_opened, [](const std::function<void()>& call) { call(); });
        self->read_all();
      });
  if (started) return;
  over_ = true;
  wake_writer();
  throw Error(ErrorCode::kIo, "the system refuses a thread for a connection", peer(),
              "raise the limit of threads (ulimit -u, or the container's pids limit)");
}

// --- the end ---

// The reading thread tells the handler: it may be within a call of it.
void SharedConnection::break_off(const Error& why) {
  {
    const MutexLock lock(mutex_);
    if (!why_) why_ = why;
  }
  broken_off_ = true;
  outgoing_->end();
  abandon();
}

void SharedConnection::abandon() {
  over_ = true;
  ::shutdown(socket_.get(), SHUT_RDWR);  // wakes the reading thread, and the other end
  out_.wake_writer();
  wake_writer();
}

void SharedConnection::end_if_closed() {
  if (!close_sent_ || !close_received_) return;
  over_ = true;
  outgoing_->end();
  wake_writer();
}

bool SharedConnection::other_end_is_gone() {
  pollfd socket{socket_.get(), POLLRDHUP, 0};
  return ::poll(&socket, 1, 0) > 0 && (socket.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

// --- writing ---

void SharedConnection::wake_writer() {
  const MutexLock lock(mutex_);
  wanted_ = true;
  changed_.notify_all();
}

// In the sender's thread: what fits at once. The rest is for the writing thread.
void SharedConnection::start_sending() {
  if (!writing_.try_lock()) return wake_writer();
  Outgoing::Frame frame;
  while (!over_ && out_.writable() > kSmallFrame + sizeof frame.header &&
         outgoing_->next(&frame, kSmallFrame)) {
    write(frame);
    frame.parts.clear();
    outgoing_->release(frame.header.bytes);
  }
  writing_.unlock();
  end_if_closed();
  if (!outgoing_->empty()) wake_writer();
}

void SharedConnection::write_all() {
  while (!over_) {
    {
      const MutexLock lock(mutex_);
      while (!wanted_) changed_.wait(mutex_);
      wanted_ = false;
    }
    {
      const MutexLock lock(writing_);
      Outgoing::Frame frame;
      while (!over_ && outgoing_->next(&frame)) {
        write(frame);
        frame.parts.clear();
        outgoing_->release(frame.header.bytes);
      }
    }
    end_if_closed();
  }
  outgoing_->end();
}

void SharedConnection::write(const Outgoing::Frame& frame) {
  write(std::as_bytes(std::span(&frame.header, 1)));
  for (const Bytes& part : frame.parts) write(part.data);
  publish();
  sent_ += static_cast<int64_t>(sizeof frame.header + frame.header.bytes);
  if (frame.header.kind == FrameKind::kClose && !over_) close_sent_ = true;
}

void SharedConnection::write(std::span<const std::byte> bytes) {
  while (!bytes.empty() && !over_) {
    const size_t size = out_.write(bytes.first(std::min(bytes.size(), kPieceBytes)));
    bytes = bytes.subspan(size);
    if (bytes.empty()) return;
    publish();
    if (size > 0) continue;
    out_.sleep_until_writable();
    if (out_.writable() == 0 && other_end_is_gone()) over_ = true;
  }
}

void SharedConnection::publish() {
  const char bell = 1;
  if (out_.publish()) (void)::send(socket_.get(), &bell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// --- reading ---

void SharedConnection::read_all() {
  while (!close_received_ && !broken_off_) {
    const std::span<const std::byte> bytes = in_.readable();
    if (bytes.empty()) {
      if (!wait_for_data()) break;
      continue;
    }
    const size_t size = std::min(bytes.size(), kPieceBytes);
    if (!feed(bytes.first(size))) break;
    in_.consume(size);
  }
  if (close_received_) return end_if_closed();
  std::optional<Error> why;
  {
    const MutexLock lock(mutex_);
    why = why_;
  }
  over_ = true;
  if (why) inbox_.finish(*why);
  ended("its process has ended");
  wake_writer();
}

// False: there will be none.
bool SharedConnection::wait_for_data() {
  if (!in_.announce_sleep()) return true;
  pollfd socket{socket_.get(), POLLIN | POLLRDHUP, 0};
  (void)::poll(&socket, 1, -1);
  in_.end_sleep();
  char bells[64];
  const ssize_t count = ::recv(socket_.get(), bells, sizeof bells, MSG_DONTWAIT);
  if (count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR))) return true;
  return !in_.readable().empty();  // what the other end has left
}

}  // namespace fleet::ps
