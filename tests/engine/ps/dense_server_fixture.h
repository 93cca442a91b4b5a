// A server's logic with three trainers, without connections: tests hand it messages, and read its
// answers as texts.
#pragma once

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ps/dense_server.h"
#include "tests/errors.h"

namespace fleet::ps {

class RecordingStore : public BlockStore {
 public:
  void load(uint32_t, std::span<const std::byte> data) override {
    FLEET_CHECK(data.size() == sizeof(float), "another size");
    calls.push_back("load");
  }
  std::vector<Bytes> read(uint32_t) const override {
    return {{.data = std::as_bytes(std::span(memory)), .owner = memory_owner}};
  }
  void add(std::span<const std::byte> gradients, bool first) override {
    float value = 0;
    std::memcpy(&value, gradients.data(), sizeof value);
    calls.push_back((first ? "first " : "add ") + std::to_string(static_cast<int>(value)));
  }
  bool has_low_types() const override { return false; }
  void add_low_types(const std::vector<std::span<const std::byte>>&) override {}
  bool shares_norms() const override { return shares; }
  Bytes norms() override { return owned_bytes("12345678", 8); }
  void set_norms(std::span<const std::byte> parts) override {
    calls.push_back("norms " + std::to_string(parts.size()));
  }
  void add_to_values(std::span<const std::byte> differences) override {
    float value = 0;
    std::memcpy(&value, differences.data(), sizeof value);
    calls.push_back("add to values " + std::to_string(static_cast<int>(value)));
    memory[0] += value;
  }
  void update(float, bool left_out) override {
    calls.push_back(left_out ? "leave out" : "update");
    memory[0] += 1;
  }

  std::vector<std::string> calls;
  std::array<float, 2> memory = {1, 2};
  std::shared_ptr<int> memory_owner = std::make_shared<int>();
  bool shares = false;
};

class DenseServerTest : public ::testing::Test {
 protected:
  static constexpr int kTrainers = 3;

  using Actions = std::vector<ServerAction>;

  static HelloHead hello_of(int trainer) {
    return {.trainer = trainer,
            .trainers = kTrainers,
            .server = 1,
            .servers = 2,
            .parameters = 11,
            .rule = 12,
            .placement = 13};
  }

  // Connection t + 1 is trainer t's.
  Actions receive(int trainer, MessageHeader header, std::vector<Bytes> parts) {
    std::vector<std::byte> payload;
    for (const Bytes& part : parts) {
      payload.insert(payload.end(), part.data.begin(), part.data.end());
    }
    const Bytes one = owned_bytes(payload.data(), payload.size());
    return server_->step(
        Received{trainer + 1, "host" + std::to_string(trainer), {.header = header, .parts = {one}}},
        now_);
  }
  Actions hello(int trainer) { return hello(trainer, hello_of(trainer)); }
  Actions hello(int trainer, const HelloHead& head) {
    return receive(trainer, {.type = MessageType::kHello}, {bytes_of_head(head)});
  }
  Actions initial(int64_t version = 0) {
    const float value = 0;
    return receive(
        0, {.type = MessageType::kInitial, .sequence = 1, .version = version},
        {bytes_of_head(InitialHead{.sections = kAllSections}), owned_bytes(&value, sizeof value)});
  }
  // The gradient is trainer + 1.
  Actions push(int trainer, int64_t step, PushHead head = {.learning_rate = 1}) {
    return push_again(trainer, step, static_cast<uint64_t>(step + 1), head);
  }
  Actions push_again(int trainer, int64_t step, uint64_t sequence,
                     PushHead head = {.learning_rate = 1}) {
    const auto value = static_cast<float>(trainer + 1);
    return receive(trainer, {.type = MessageType::kPush, .sequence = sequence, .version = step},
                   {bytes_of_head(head), owned_bytes(&value, sizeof value)});
  }
  Actions pull(int trainer, int64_t version) {
    return receive(trainer, {.type = MessageType::kPull, .version = version}, {});
  }
  Actions goodbye(int trainer) { return receive(trainer, {.type = MessageType::kGoodbye}, {}); }
  Actions closed(int trainer) { return server_->step(Closed{trainer + 1, "reset"}, now_); }
  Actions pass(double seconds) {
    now_ += seconds;
    return server_->step(TimePassed(), now_);
  }
  void start() {
    for (int t = 0; t < kTrainers; ++t) hello(t);
    initial();
    store_.calls.clear();
  }

  // "1 values", "2 failure and close", by connection.
  static std::vector<std::string> texts(const Actions& actions) {
    static const std::map<MessageType, std::string> kNames = {
        {MessageType::kHello, "hello"},       {MessageType::kValues, "values"},
        {MessageType::kStates, "states"},     {MessageType::kNorms, "norms"},
        {MessageType::kAccepted, "accepted"}, {MessageType::kFailure, "failure"}};
    std::vector<std::string> all;
    for (const ServerAction& action : actions) {
      all.push_back(std::to_string(action.connection) + " " +
                    kNames.at(action.message->header.type) + (action.close ? " and close" : ""));
    }
    return all;
  }
  // Behind the head.
  static std::vector<float> sent_values(const ServerAction& action) {
    std::vector<float> all;
    for (size_t i = 1; i < action.message->parts.size(); ++i) {
      const std::span<const std::byte> data = action.message->parts[i].data;
      const auto* first = reinterpret_cast<const float*>(data.data());
      all.insert(all.end(), first, first + data.size() / sizeof(float));
    }
    return all;
  }
  // The error that trainer 0 receives.
  static Error sent_error(const Actions& actions) {
    for (const ServerAction& action : actions) {
      if (action.message->header.type != MessageType::kFailure) continue;
      const Bytes payload = action.message->parts[0];
      return error_of({.header = action.message->header, .parts = {payload}});
    }
    ADD_FAILURE() << "no failure was sent";
    return {ErrorCode::kInternal, ""};
  }

  RecordingStore store_;
  double now_ = 100;
  std::optional<DenseServer> server_{
      std::in_place, DenseServerOptions{.own = hello_of(0), .timeout = 10}, store_, now_};
};

}  // namespace fleet::ps
