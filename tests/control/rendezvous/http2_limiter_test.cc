#include "rendezvous/http2_limiter.h"

#include <gtest/gtest.h>

#include <string>

namespace fleet {
namespace {

using namespace std::chrono_literals;

constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6, kContinuation = 9;
constexpr uint8_t kEndStream = 1, kEndHeaders = 4;

std::string frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string all;
  for (const int shift : {16, 8, 0}) all += static_cast<char>(payload.size() >> shift);
  all += static_cast<char>(type);
  all += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) all += static_cast<char>(stream >> shift);
  return all + payload;
}

// Of a message of gRPC, as much as is given.
std::string message(uint32_t length, size_t given) {
  std::string all(1, '\0');
  for (const int shift : {24, 16, 8, 0}) all += static_cast<char>(length >> shift);
  return all + std::string(given, 'm');
}

class Limiter : public testing::Test {
 protected:
  const char* client(const std::string& bytes) {
    return limiter_.client_sent(bytes, 1'000'000, now_).error;
  }
  void send_preface() {
    ASSERT_EQ(client("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "")), nullptr);
  }
  const char* open(uint32_t stream) {
    return client(frame(kHeaders, kEndHeaders, stream, "headers"));
  }

  Http2Limiter::Time now_{1h};
  Http2Limiter limiter_{{}, now_};
};

TEST_F(Limiter, Call_IsOpenUntilTheServerEndsIt) {
  send_preface();
  EXPECT_EQ(open(1), nullptr);
  EXPECT_EQ(client(frame(kData, kEndStream, 1, message(3, 3))), nullptr);
  EXPECT_EQ(limiter_.open_streams(), 1u);
  limiter_.server_sent(frame(kHeaders, kEndHeaders, 1, "answer"));
  EXPECT_EQ(limiter_.open_streams(), 1u);
  limiter_.server_sent(frame(kHeaders, kEndHeaders | kEndStream, 1, "trailers"));
  EXPECT_EQ(limiter_.open_streams(), 0u);
  EXPECT_EQ(limiter_.opened(), 1u);
}

TEST_F(Limiter, BytesOneByOne_AreTheSameFrames) {
  const std::string all = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(kSettings, 0, 0, "") +
                          frame(kHeaders, 0, 1, "head") +
                          frame(kContinuation, kEndHeaders, 1, "ers") +
                          frame(kData, 0, 1, message(5, 2));
  for (const char byte : all) ASSERT_EQ(client(std::string(1, byte)), nullptr);
  EXPECT_TRUE(limiter_.has_preface());
  EXPECT_EQ(limiter_.open_streams(), 1u);
  EXPECT_EQ(limiter_.partial_bytes(), 7u);
}

TEST_F(Limiter, AnotherProtocol_IsNamedAtItsFirstByte) { EXPECT_NE(client("G"), nullptr); }

TEST_F(Limiter, HeadersWithoutEnd_AreStopped) {
  send_preface();
  EXPECT_EQ(client(frame(kHeaders, 0, 1, std::string(1000, 'h'))), nullptr);
  const char* wrong = nullptr;
  size_t sent = 0;
  for (; !wrong && sent < 1'000'000; sent += 1000) {
    wrong = client(frame(kContinuation, 0, 1, std::string(1000, 'h')));
  }
  EXPECT_NE(wrong, nullptr);
  EXPECT_LE(sent, 17'000u);
}

TEST_F(Limiter, EmptyContinuationsWithoutEnd_AreStopped) {
  send_preface();
  EXPECT_EQ(client(frame(kHeaders, 0, 1, "h")), nullptr);
  const char* wrong = nullptr;
  int sent = 0;
  while (!wrong && sent++ < 10'000) wrong = client(frame(kContinuation, 0, 1, ""));
  EXPECT_LT(sent, 1'000);
}

TEST_F(Limiter, FramesBetweenHeaders_AreRefused) {
  send_preface();
  EXPECT_EQ(client(frame(kHeaders, 0, 1, "h")), nullptr);
  EXPECT_NE(client(frame(kPing, 0, 0, "12345678")), nullptr);
}

TEST_F(Limiter, RapidReset_IsStopped) {
  send_preface();
  const char* wrong = nullptr;
  uint32_t stream = 1;
  for (; !wrong && stream < 200'000; stream += 2) {
    wrong = open(stream);
    if (!wrong) wrong = client(frame(kReset, 0, stream, "why?"));
  }
  EXPECT_NE(wrong, nullptr);
  EXPECT_EQ(stream / 2, 1'001u);
}

TEST_F(Limiter, ResetsNowAndThen_AreFine) {
  send_preface();
  for (uint32_t stream = 1; stream < 20'000; stream += 2, now_ += 20ms) {
    ASSERT_EQ(open(stream), nullptr);
    ASSERT_EQ(client(frame(kReset, 0, stream, "why?")), nullptr);
  }
  EXPECT_EQ(limiter_.open_streams(), 0u);
}

TEST_F(Limiter, PingsWithoutEnd_AreStopped) {
  send_preface();
  const char* wrong = nullptr;
  int sent = 0;
  while (!wrong && sent++ < 100'000) wrong = client(frame(kPing, 0, 0, "12345678"));
  EXPECT_LT(sent, 11'000);
}

TEST_F(Limiter, MessageThatIsNotComplete_IsCounted) {
  send_preface();
  EXPECT_FALSE(limiter_.oldest_partial());
  EXPECT_EQ(open(1), nullptr);
  EXPECT_EQ(client(frame(kData, 0, 1, message(10'000, 4'000))), nullptr);
  EXPECT_EQ(limiter_.partial_bytes(), 4'005u);
  const auto began = now_;
  now_ += 1s;
  EXPECT_EQ(open(3), nullptr);
  EXPECT_EQ(client(frame(kData, 0, 3, message(10'000, 1))), nullptr);
  EXPECT_EQ(limiter_.oldest_partial(), began);
  EXPECT_EQ(client(frame(kData, 0, 1, std::string(6'000, 'm'))), nullptr);
  EXPECT_EQ(limiter_.partial_bytes(), 6u);
  EXPECT_EQ(limiter_.oldest_partial(), now_);
  EXPECT_EQ(client(frame(kReset, 0, 3, "why?")), nullptr);
  EXPECT_EQ(limiter_.partial_bytes(), 0u);
}

TEST_F(Limiter, StreamsBeyondThoseThatMayBeOpened_WaitAndAreTakenLater) {
  send_preface();
  std::string all;
  for (uint32_t stream = 1; stream < 20; stream += 2) {
    all += frame(kHeaders, kEndHeaders, stream, "headers") + frame(kData, 0, stream, message(2, 2));
  }
  const size_t each = all.size() / 10;
  for (size_t piece = 1; piece <= 30; ++piece) {  // wherever the pieces end
    Http2Limiter limiter({}, now_);
    limiter.client_sent("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0, now_);
    std::string waiting;
    size_t taken = 0;
    for (size_t at = 0; at < all.size(); at += piece) {
      waiting += all.substr(at, piece);
      const auto read = limiter.client_sent(waiting, 4 - limiter.opened(), now_);
      ASSERT_EQ(read.error, nullptr);
      taken += read.consumed;
      waiting.erase(0, read.consumed);
    }
    EXPECT_EQ(limiter.opened(), 4u) << piece;
    EXPECT_GE(taken, 4 * each) << piece;
    EXPECT_LT(taken, 4 * each + 9) << piece;
    EXPECT_EQ(limiter.client_sent(waiting, 100, now_).consumed, waiting.size());
    EXPECT_EQ(limiter.opened(), 10u) << piece;
  }
}

TEST_F(Limiter, FrameLargerThanTheServerAllows_IsRefused) {
  send_preface();
  EXPECT_NE(client(frame(kData, 0, 1, std::string(16'385, 'd'))), nullptr);
}

}  // namespace
}  // namespace fleet
