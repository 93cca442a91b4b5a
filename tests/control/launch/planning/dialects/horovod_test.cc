#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launch/planning/dialects/dialect.h"
#include "launch/planning/dialects/horovod_kv.h"
#include "tests/control/launch/planning/dialects/fake_store.h"
#include "tests/control/launch/sample_job.h"

namespace fleet {
namespace {

using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(HorovodDialect, HasItsNames) {
  RankContext context;
  context.service_port = 4242;
  context.interface = "eth1";
  context.lists = std::make_shared<const JobLists>(JobLists{.nodes_with = {{0, 1}, {0, 1}}});
  EXPECT_THAT(
      dialect_named("horovod").variables(sample_job(false), 1, context),
      UnorderedElementsAre(
          Pair("HOROVOD_RANK", "3"), Pair("HOROVOD_SIZE", "4"), Pair("HOROVOD_LOCAL_RANK", "1"),
          Pair("HOROVOD_LOCAL_SIZE", "2"), Pair("HOROVOD_CROSS_RANK", "1"),
          Pair("HOROVOD_CROSS_SIZE", "2"), Pair("HOROVOD_HOSTNAME", "10.0.0.2"),
          Pair("HOROVOD_CONTROLLER", "gloo"), Pair("HOROVOD_CPU_OPERATIONS", "gloo"),
          Pair("HOROVOD_GLOO_RENDEZVOUS_ADDR", "127.0.0.1"),
          Pair("HOROVOD_GLOO_RENDEZVOUS_PORT", "4242"), Pair("HOROVOD_GLOO_IFACE", "eth1")));
}

TEST(HttpReader, RequestInPieces_IsPutTogether) {
  const std::string text = "PUT /global_/3 HTTP/1.1\r\nHost: x\r\ncontent-length: 5\r\n\r\nab\ncd";
  for (size_t cut = 0; cut < text.size(); ++cut) {
    HttpReader reader;
    EXPECT_EQ(reader.add(text.substr(0, cut)), HttpReader::State::kMore) << cut;
    EXPECT_EQ(reader.add(text.substr(cut)), HttpReader::State::kWhole) << cut;
    EXPECT_EQ(reader.request(),
              (HttpRequest{.method = "PUT", .path = "/global_/3", .body = "ab\ncd", .host = "x"}));
  }
}

TEST(HttpReader, Chunks_ArePutTogether) {
  const std::string text =
      "PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n";
  for (size_t cut = 0; cut < text.size(); ++cut) {
    HttpReader reader;
    EXPECT_EQ(reader.add(text.substr(0, cut)), HttpReader::State::kMore) << cut;
    EXPECT_EQ(reader.add(text.substr(cut)), HttpReader::State::kWhole) << cut;
    EXPECT_EQ(reader.request(), (HttpRequest{"PUT", "/a/b", "abc"}));
  }
}

TEST(HttpReader, LargeValue_IsBad) {
  HttpReader reader;
  ASSERT_EQ(reader.add("PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            HttpReader::State::kMore);
  auto state = HttpReader::State::kMore;
  for (int sent = 0; sent < 9 && state == HttpReader::State::kMore; ++sent) {
    state = reader.add("100000\r\n" + std::string(1 << 20, 'x') + "\r\n");
  }
  EXPECT_EQ(state, HttpReader::State::kBad);
}

TEST(HttpReader, ChunksInPieces_AreRead) {
  const std::string text =
      "PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nvalue\r\n0\r\nx: y\r\n\r\n";
  for (size_t length = 1; length < text.size(); ++length) {
    HttpReader reader;
    auto state = HttpReader::State::kMore;
    for (size_t at = 0; at < text.size(); at += length) {
      ASSERT_EQ(state, HttpReader::State::kMore) << length;
      state = reader.add(text.substr(at, length));
    }
    ASSERT_EQ(state, HttpReader::State::kWhole) << length;
    EXPECT_EQ(reader.request().body, "value");
  }
}

TEST(HttpReader, EndlessLineOfAChunk_IsBad) {
  for (const std::string begin : {"0", "0\r\n"}) {  // its size; the fields after the last chunk
    HttpReader reader;
    ASSERT_EQ(reader.add("PUT /a/b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + begin),
              HttpReader::State::kMore);
    auto state = HttpReader::State::kMore;
    for (int sent = 0; sent < 20 && state == HttpReader::State::kMore; ++sent) {
      state = reader.add(std::string(4096, '0'));
    }
    EXPECT_EQ(state, HttpReader::State::kBad) << begin;
  }
}

TEST(HttpReader, WhatIsNoRequest_IsBad) {
  for (const std::string text : {"hello\r\n\r\n", "GET /a/b SPDY/3\r\n\r\n",
                                 "PUT /a/b HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                                 "PUT /a/b HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                                 "PUT /a/b HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
                                 "GET /a/b HTTP/1.1\r\nx\r\n\r\n"}) {
    EXPECT_EQ(HttpReader().add(text), HttpReader::State::kBad) << text;
  }
  EXPECT_EQ(HttpReader().add(std::string(70'000, 'x')), HttpReader::State::kBad);
}

TEST(HttpResponse, HasItsLength) {
  EXPECT_EQ(http_response(200, "abc"),
            "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc");
  EXPECT_TRUE(http_response(404, "").starts_with("HTTP/1.1 404 Not Found\r\n"));
}

class HorovodKvTest : public ::testing::Test {
 protected:
  std::pair<int, std::string> ask(const std::string& method, const std::string& path,
                                  const std::string& body = {}) {
    std::pair<int, std::string> response{0, "no answer"};
    kv.handle({method, path, body}, [&](int status, const std::string& text) {
      response = {status, status == 200 ? text : ""};
    });
    return response;
  }

  HorovodKv kv{sample_job(false), std::make_shared<FakeStore>()};
};

TEST_F(HorovodKvTest, WhatIsPut_IsThere) {
  EXPECT_THAT(ask("GET", "/global_/0"), Pair(404, ""));
  EXPECT_THAT(ask("PUT", "/global_/0", std::string("a\0b", 3)), Pair(200, ""));
  EXPECT_THAT(ask("GET", "/global_/0"), Pair(200, std::string("a\0b", 3)));
  EXPECT_THAT(ask("GET", "/local_10.0.0.1/0"), Pair(404, ""));
}

TEST_F(HorovodKvTest, ScopeThatAllHaveFinishedWith_IsEmpty) {
  ask("PUT", "/local_10.0.0.2/0", "old");
  EXPECT_THAT(ask("DELETE", "/local_10.0.0.2/0"), Pair(200, ""));
  EXPECT_THAT(ask("GET", "/local_10.0.0.2/0"), Pair(200, "old"));
  EXPECT_THAT(ask("DELETE", "/local_10.0.0.2/1"), Pair(200, ""));
  EXPECT_THAT(ask("GET", "/local_10.0.0.2/0"), Pair(404, ""));
}

TEST_F(HorovodKvTest, ScopesHaveTheirSizes) {
  EXPECT_EQ(kv.scope_size("global_"), 4);
  EXPECT_EQ(kv.scope_size("local_10.0.0.1"), 2);
  EXPECT_EQ(kv.scope_size("local_elsewhere"), 0);
  EXPECT_EQ(kv.scope_size("cross_1"), 2);
  EXPECT_EQ(kv.scope_size("cross_2"), 0);
  EXPECT_EQ(kv.scope_size("mine"), 0);
}

TEST_F(HorovodKvTest, OtherRequests_AreRefused) {
  EXPECT_EQ(ask("POST", "/global_/0").first, 400);
  for (const std::string path : {"", "/", "/global_", "/global_/", "global_/0"}) {
    EXPECT_EQ(ask("GET", path).first, 400) << path;
  }
}

}  // namespace
}  // namespace fleet
