// Both ends of a connection, for tests: handlers that record, and values that tell messages apart.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "ps/connection.h"

namespace fleet::ps {

inline constexpr std::chrono::seconds kBound{60};  // against hanging

// A payload that no other seed gives.
inline std::vector<std::byte> pattern(size_t bytes, uint64_t seed) {
  std::vector<std::byte> data(bytes);
  uint64_t word = seed * 0x9e3779b97f4a7c15u + 1;
  for (size_t i = 0; i < bytes; i += 8) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    std::memcpy(data.data() + i, &word, std::min<size_t>(8, bytes - i));
  }
  return data;
}

// Whose payload the message itself owns.
inline Message message_of(std::vector<std::byte> data, uint64_t sequence,
                          MessageType type = MessageType::kPush) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(data));
  Message message{{.type = type, .sequence = sequence}, {}};
  message.parts.push_back({*owner, owner});
  return message;
}

class Recorder : public ConnectionHandler {
 public:
  struct Received {
    std::shared_ptr<Connection> from;
    Message message;
  };
  struct End {
    std::shared_ptr<Connection> of;
    std::optional<Error> why;
  };

  void opened(const std::shared_ptr<Connection>& connection) override {
    const MutexLock lock(mutex_);
    opened_.push_back(connection);
    changed_.notify_all();
  }
  void received(const std::shared_ptr<Connection>& connection, Message message) override {
    const MutexLock lock(mutex_);
    messages_.push_back({connection, std::move(message)});
    changed_.notify_all();
    while (held_) changed_.wait(mutex_);
  }
  void closed(const std::shared_ptr<Connection>& connection, const Error* why) override {
    const MutexLock lock(mutex_);
    ends_.push_back({connection, why ? std::optional<Error>(*why) : std::nullopt});
    changed_.notify_all();
  }

  // While it holds, the handler does not return from received().
  void hold(bool held) {
    const MutexLock lock(mutex_);
    held_ = held;
    changed_.notify_all();
  }
  std::shared_ptr<Connection> wait_for_opened(size_t index = 0) {
    const MutexLock lock(mutex_);
    wait([&]() FLEET_REQUIRES(mutex_) { return opened_.size() > index; }, "opened()");
    return opened_.size() > index ? opened_[index] : nullptr;
  }
  std::vector<Received> wait_for_messages(size_t count) {
    const MutexLock lock(mutex_);
    wait([&]() FLEET_REQUIRES(mutex_) { return messages_.size() >= count; }, "received()");
    return messages_;
  }
  End wait_for_end(size_t index = 0) {
    const MutexLock lock(mutex_);
    wait([&]() FLEET_REQUIRES(mutex_) { return ends_.size() > index; }, "closed()");
    return ends_.size() > index ? ends_[index] : End{};
  }
  size_t opened_count() const {
    const MutexLock lock(mutex_);
    return opened_.size();
  }
  size_t message_count() const {
    const MutexLock lock(mutex_);
    return messages_.size();
  }
  size_t end_count() const {
    const MutexLock lock(mutex_);
    return ends_.size();
  }

 private:
  template <typename Ready>
  void wait(const Ready& ready, const char* what) FLEET_REQUIRES(mutex_) {
    if (!changed_.wait_for(mutex_, kBound, ready)) ADD_FAILURE() << "no " << what;
  }

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<std::shared_ptr<Connection>> opened_ FLEET_GUARDED_BY(mutex_);
  std::vector<Received> messages_ FLEET_GUARDED_BY(mutex_);
  std::vector<End> ends_ FLEET_GUARDED_BY(mutex_);
  bool held_ FLEET_GUARDED_BY(mutex_) = false;
};

// The transports, for parameterized tests.
enum class Way { kInProcess, kGrpc, kTls, kShm };

inline std::string name_of(Way way) {
  switch (way) {
    case Way::kInProcess:
      return "InProcess";
    case Way::kGrpc:
      return "Grpc";
    case Way::kTls:
      return "Tls";
    case Way::kShm:
      break;
  }
  return "Shm";
}

inline TransportOptions options_of(Way way) {
  TransportOptions options;
  options.shared_memory = way == Way::kShm;
  if (way == Way::kTls) options.security = {"a secret of this test", true, "this test"};
  return options;
}

struct Ends {
  explicit Ends(Way way) : way(way) {
    if (way == Way::kInProcess) {
      auto pair = connect_in_process(client_handler, server_handler);
      client = pair.client;
      server = pair.server;
      return;
    }
    listener = listen("127.0.0.1:0", server_handler, options_of(way));
    client = connect(listener->address(), client_handler, options_of(way), kBound);
    server = server_handler.wait_for_opened();
  }
  ~Ends() {
    client_handler.hold(false);
    server_handler.hold(false);
    if (client) client->disconnect(kBound);
    if (server) server->disconnect(kBound);
  }

  const Way way;
  Recorder client_handler, server_handler;
  std::unique_ptr<Listener> listener;
  std::shared_ptr<Connection> client, server;
};

}  // namespace fleet::ps
