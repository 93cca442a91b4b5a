#include "ps/transport/inbox.h"

#include <utility>

#include "base/thread.h"

namespace fleet::ps {

void Inbox::start(const std::shared_ptr<Connection>& connection, bool call_opened,
                  Deliver deliver) {
  {
    const MutexLock lock(mutex_);
    deliver_ = std::move(deliver);
    connection_ = connection;
    if (call_opened && !deliver_) events_.push_front({Event::Kind::kOpened});
  }
  if (deliver_) {
    if (call_opened) deliver_([this] { handle({Event::Kind::kOpened}); });
    return;
  }
  // The thread keeps the connection, and with it this object, alive until closed() has returned.
  if (start_detached([this, connection] { run(); })) return;
  const MutexLock lock(mutex_);
  connection_.reset();
  finished_ = true;
  throw Error(ErrorCode::kIo, "the system refuses a thread for a connection", connection->peer(),
              "raise the limit of threads (ulimit -u, or the container's pids limit)");
}

void Inbox::push(Message message) {
  // Many small messages count too.
  const size_t bytes = message.bytes() + sizeof(Event);
  add({Event::Kind::kMessage, std::move(message), std::nullopt, bytes});
}

void Inbox::finish(const std::optional<Error>& why) { add({Event::Kind::kClosed, {}, why}); }

void Inbox::add(Event event) {
  {
    const MutexLock lock(mutex_);
    if (finishing_) return;
    if (event.kind == Event::Kind::kClosed) finishing_ = true;
    if (!deliver_) {
      bytes_ += event.bytes;
      events_.push_back(std::move(event));
      changed_.notify_all();
      return;
    }
  }
  auto shared = std::make_shared<Event>(std::move(event));  // std::function copies
  deliver_([this, shared] { handle(std::move(*shared)); });
}

bool Inbox::full() const {
  const MutexLock lock(mutex_);
  return bytes_ >= kFullBytes;
}

bool Inbox::finished() const {
  const MutexLock lock(mutex_);
  return finished_;
}

bool Inbox::wait_until_finished(std::chrono::steady_clock::time_point deadline) const {
  const MutexLock lock(mutex_);
  while (!finished_ && changed_.wait_until(mutex_, deadline)) {
  }
  return finished_;
}

void Inbox::run() {
  for (;;) {
    Event event{Event::Kind::kOpened};
    {
      const MutexLock lock(mutex_);
      while (events_.empty()) changed_.wait(mutex_);
      event = std::move(events_.front());
      events_.pop_front();
    }
    const bool last = event.kind == Event::Kind::kClosed;
    const size_t bytes = event.bytes;
    handle(std::move(event));
    if (last) return;
    if (bytes == 0) continue;
    bool room = false;
    {
      const MutexLock lock(mutex_);
      room = bytes_ >= kFullBytes;
      bytes_ -= bytes;
      room = room && bytes_ < kFullBytes;
    }
    if (room) room_();
  }
}

void Inbox::handle(Event event) {
  std::shared_ptr<Connection> connection;
  {
    const MutexLock lock(mutex_);
    connection = connection_;
  }
  switch (event.kind) {
    case Event::Kind::kOpened:
      return handler_.opened(connection);
    case Event::Kind::kMessage:
      return handler_.received(connection, std::move(event.message));
    case Event::Kind::kClosed:
      break;
  }
  handler_.closed(connection, event.why ? &*event.why : nullptr);
  const MutexLock lock(mutex_);
  connection_.reset();
  finished_ = true;
  changed_.notify_all();
}

}  // namespace fleet::ps
