#include "ps/server_mailboxes.h"

#include "base/clock.h"
#include "base/running_clock.h"
#include "ps/dense_payload.h"

namespace fleet::ps {

class ServerMailboxes::Handler : public ConnectionHandler {
 public:
  Handler(ServerMailboxes& owner, int server) : owner_(owner), server_(server) {}
  void received(const std::shared_ptr<Connection>&, Message message) override {
    if (owner_.counters_) owner_.counters_->received(server_, message);
    const MutexLock lock(owner_.mutex_);
    owner_.boxes_[server_].messages.push_back(std::move(message));
    owner_.changed_.notify_all();
  }
  void closed(const std::shared_ptr<Connection>&, const Error* why) override {
    const MutexLock lock(owner_.mutex_);
    owner_.boxes_[server_].end = why ? why->failure() : "it closed the connection";
    owner_.changed_.notify_all();
  }

 private:
  ServerMailboxes& owner_;
  const int server_;
};

ServerMailboxes::ServerMailboxes(std::vector<std::string> names, TrainerCounters* counters)
    : names_(std::move(names)), counters_(counters) {
  for (size_t s = 0; s < names_.size(); ++s) {
    handlers_.push_back(std::make_unique<Handler>(*this, static_cast<int>(s)));
  }
  const MutexLock lock(mutex_);
  boxes_.resize(names_.size());
}

ConnectionHandler& ServerMailboxes::handler(int server) { return *handlers_[server]; }

std::optional<Message> ServerMailboxes::take(int server, MessageType type, Topic topic) {
  std::deque<Message>& messages = boxes_[server].messages;
  const bool result = type == MessageType::kResult;
  const auto is_of_another = [&](const MessageHeader& header) {
    if (result || header.type == MessageType::kResult) return header.type != type;
    return (header.table > 0) != (topic == Topic::kRows);
  };
  for (auto at = messages.begin(); at != messages.end();) {
    const MessageType other = at->header.type;
    if (other == MessageType::kFailure) return std::nullopt;
    if (is_of_another(at->header)) {
      ++at;
      continue;
    }
    if (other == type) {
      Message message = std::move(*at);
      messages.erase(at);
      return message;
    }
    if (other == MessageType::kAccepted) {
      at = messages.erase(at);
      continue;
    }
    FLEET_CHECK(false, name(server) + " sent a message of type " +
                           std::to_string(static_cast<int>(other)) + " instead of " +
                           std::to_string(static_cast<int>(type)));
  }
  return std::nullopt;
}

void ServerMailboxes::throw_if_lost() {
  for (const Box& box : boxes_) {
    for (const Message& message : box.messages) {
      if (message.header.type == MessageType::kFailure) throw error_of(message);
    }
  }
  for (size_t s = 0; s < boxes_.size(); ++s) {
    if (!boxes_[s].end) continue;
    throw Error(ErrorCode::kPeerLost, "the connection has ended: " + *boxes_[s].end, names_[s],
                "see its log");
  }
}

Message ServerMailboxes::wait(int server, MessageType type, std::chrono::milliseconds timeout,
                              Topic topic) {
  RunningDeadline deadline(timeout);
  const MutexLock lock(mutex_);
  for (;;) {
    if (std::optional<Message> message = take(server, type, topic)) return std::move(*message);
    throw_if_lost();
    if (deadline.passed()) {
      throw Error(ErrorCode::kTimeout, "no answer within " + seconds_text(timeout), name(server),
                  "see its log");
    }
    changed_.wait_until(mutex_, deadline.next_look());
  }
}

}  // namespace fleet::ps
