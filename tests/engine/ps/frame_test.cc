#include "ps/transport/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ps/transport/outgoing.h"
#include "tests/engine/ps/ends.h"
#include "tests/errors.h"

namespace fleet::ps {
namespace {

std::vector<std::byte> bytes_of(Outgoing& outgoing) {
  std::vector<std::byte> all;
  Outgoing::Frame frame;
  while (outgoing.next(&frame)) {
    const auto header = std::as_bytes(std::span(&frame.header, 1));
    all.insert(all.end(), header.begin(), header.end());
    for (const Bytes& part : frame.parts) all.insert(all.end(), part.data.begin(), part.data.end());
    outgoing.release(frame.header.bytes);
  }
  return all;
}

struct Assembled {
  ReceiveMemory memory;
  std::vector<Message> messages;
  std::vector<FrameKind> controls;
  Assembler assembler{memory,
                      {[this](Message message) { messages.push_back(std::move(message)); },
                       [this](FrameKind kind) { controls.push_back(kind); }}};
};

TEST(Frames, CutAnywhere_GiveTheMessages) {
  Outgoing outgoing;
  outgoing.push(FrameKind::kOpen);
  for (const size_t size : {0, 1, 1000, 3'000'000})
    outgoing.push(message_of(pattern(size, 1), size));
  outgoing.close();
  const auto stream = bytes_of(outgoing);
  for (const size_t step : {7, 40, 4096, 5'000'000}) {
    Assembled all;
    for (size_t at = 0; at < stream.size(); at += step) {
      all.assembler.feed(std::span(stream).subspan(at, std::min(step, stream.size() - at)));
    }
    ASSERT_EQ(all.messages.size(), 4u);
    for (const Message& message : all.messages) {
      const auto whole = pattern(message.header.sequence, 1);
      ASSERT_EQ(message.bytes(), whole.size());
      EXPECT_TRUE(std::equal(whole.begin(), whole.end(), message.payload().begin()));
    }
    EXPECT_THAT(all.controls, testing::ElementsAre(FrameKind::kOpen, FrameKind::kClose));
  }
}

// More than an int, or a message of gRPC, counts.
TEST(Frames, MessageOfThreeGiB_IsCutIntoFrames) {
  Outgoing outgoing;
  const auto one = std::make_shared<std::vector<std::byte>>(pattern(64 << 20, 1));
  Message message;
  for (int i = 0; i < 48; ++i) message.parts.push_back({*one, one});
  const uint64_t total = message.bytes();
  outgoing.push(std::move(message));
  uint64_t sum = 0;
  Outgoing::Frame frame;
  while (outgoing.next(&frame)) {
    EXPECT_EQ(frame.header.total, total);
    EXPECT_LE(frame.header.bytes, kFrameBytes);
    sum += frame.header.bytes;
  }
  EXPECT_EQ(sum, total);
  EXPECT_EQ(total, uint64_t{3} << 30);
}

Error error_of(std::initializer_list<FrameHeader> headers) {
  Assembled all;
  return thrown_by([&] {
    for (const FrameHeader& header : headers) {
      all.assembler.feed(std::as_bytes(std::span(&header, 1)));
      const std::vector<std::byte> payload(header.bytes);
      all.assembler.feed(payload);
    }
  });
}

TEST(Frames, Noise_IsRefused) {
  using Kind = FrameKind;
  EXPECT_THAT(error_of({{.magic = 1}}), IsUsageError());
  EXPECT_THAT(error_of({{.kind = Kind(0)}}), IsUsageError());
  EXPECT_THAT(error_of({{.kind = Kind(9)}}), IsUsageError());
  EXPECT_THAT(error_of({{.bytes = kFrameBytes + 1, .total = kFrameBytes + 1}}), IsUsageError());
  EXPECT_THAT(error_of({{.bytes = 2, .total = 1}}), IsUsageError());
  EXPECT_THAT(error_of({{.kind = Kind::kMore, .bytes = 1, .total = 1}}), IsUsageError());
  EXPECT_THAT(error_of({{.bytes = 1, .total = 2}, {.kind = Kind::kClose}}), IsUsageError());
  EXPECT_THAT(error_of({{.bytes = 1, .total = 2}, {.bytes = 1, .total = 2}}), IsUsageError());
  EXPECT_THAT(error_of({{.bytes = 1, .total = 2}, {.kind = Kind::kMore, .bytes = 1, .total = 3}}),
              IsUsageError());
  EXPECT_THAT(error_of({{.total = kMaxMessageBytes + 1}}), IsUsageError());
}

TEST(Frames, MemoryOfPayloads_IsUsedAgain) {
  ReceiveMemory memory;
  const std::byte* const first = memory.take(1'000'000).data();
  const auto block = memory.take(990'000);
  EXPECT_EQ(block.data(), first);
  EXPECT_NE(memory.take(990'000).data(), first);  // it is in use
  EXPECT_EQ(memory.take(0).size(), 0u);
}

}  // namespace
}  // namespace fleet::ps
