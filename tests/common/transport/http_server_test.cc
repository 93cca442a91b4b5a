#include "transport/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <memory>

#include "base/file.h"
#include "base/thread.h"
#include "tests/errors.h"
#include "tests/http_answer.h"
#include "transport/event_loop.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

class HttpServerTest : public ::testing::Test {
 protected:
  void serve(HttpServer::Handler handler) {
    server_ = std::make_unique<HttpServer>(loop_, "127.0.0.1", 0, std::move(handler));
    port_ = server_->port();
    thread_ = std::make_unique<Thread>("loop", [this] { loop_.run(); });
  }
  void TearDown() override {
    loop_.stop();
    thread_.reset();
  }
  // address: of the client.
  UniqueFd connect(const char* address = "127.0.0.1") const {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = ::inet_addr(address);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&own), sizeof own), 0);
    sockaddr_in where = {};
    where.sin_family = AF_INET;
    where.sin_port = htons(static_cast<uint16_t>(port_));
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<sockaddr*>(&where), sizeof where), 0);
    return socket;
  }
  // Everything until the server closes the connection.
  static std::string rest_of(const UniqueFd& socket) {
    std::string all;
    char chunk[4096];
    for (ssize_t n = 0; (n = ::recv(socket.get(), chunk, sizeof chunk, 0)) > 0;) {
      all.append(chunk, static_cast<size_t>(n));
    }
    return all;
  }
  std::string get(const std::string& request, const char* address = "127.0.0.1") const {
    const UniqueFd socket = connect(address);
    EXPECT_EQ(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(request.size()));
    return rest_of(socket);
  }

  EventLoop loop_;
  std::unique_ptr<HttpServer> server_;
  std::unique_ptr<Thread> thread_;
  int port_ = 0;
};

TEST_F(HttpServerTest, Request_GetsTheHandlersResponse) {
  serve([](const HttpRequest& request, const HttpServer::Respond& respond) {
    respond({.type = "text/x", .body = request.method + " " + request.path + "\n"});
  });
  HttpAnswer answer = parse_http(get("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["Content-Type"], "text/x");
  EXPECT_EQ(answer.body, "GET /metrics\n");
}

TEST_F(HttpServerTest, Authorization_IsPassedOn) {
  serve([](const HttpRequest& request, const HttpServer::Respond& respond) {
    respond({.body = request.authorization});
  });
  EXPECT_EQ(parse_http(get("GET / HTTP/1.1\r\nAuthorization: Bearer abc\r\n\r\n")).body,
            "Bearer abc");
}

TEST_F(HttpServerTest, BytesThatAreNoRequest_AreRefused) {
  serve([](const HttpRequest&, const HttpServer::Respond& respond) { respond({}); });
  EXPECT_EQ(parse_http(get("nonsense\r\n\r\n")).status, 400);
}

TEST_F(HttpServerTest, LargeBody_IsRefusedBeforeItIsRead) {
  serve([](const HttpRequest&, const HttpServer::Respond& respond) { respond({.body = "ok"}); });
  const auto post = [&](uint64_t bytes) {
    return "POST / HTTP/1.1\r\nContent-Length: " + std::to_string(bytes) + "\r\n\r\n";
  };
  EXPECT_EQ(parse_http(get(post(HttpLimits().body + 1))).status, 400);
  EXPECT_EQ(parse_http(get(post(3) + "abc")).body, "ok");
}

TEST_F(HttpServerTest, NoDescriptorLeft_WaitsForOneWithoutUsingACore) {
  HttpServer server(loop_, "127.0.0.1", 0,
                    [](const HttpRequest&, const HttpServer::Respond& to) { to({.body = "ok"}); });
  port_ = server.port();
  const UniqueFd client = connect();
  rlimit usual;
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit none = {0, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const size_t handlers = loop_.run_for(500ms);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_LE(handlers, 20u);
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  ASSERT_EQ(::send(client.get(), request.data(), request.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(request.size()));
  thread_ = std::make_unique<Thread>("loop", [this] { loop_.run(); });
  EXPECT_EQ(parse_http(rest_of(client)).body, "ok");
}

TEST_F(HttpServerTest, LateAnswer_IsSentOnce) {
  std::vector<HttpServer::Respond> later;
  serve([&](const HttpRequest& request, const HttpServer::Respond& respond) {
    if (request.path == "/later") return later.push_back(respond);
    for (const HttpServer::Respond& one : later) one({.body = "first"}), one({.body = "second"});
    respond({.body = "now"});
  });
  const UniqueFd waiting = connect();
  const std::string request = "GET /later HTTP/1.1\r\n\r\n";
  ASSERT_GT(::send(waiting.get(), request.data(), request.size(), 0), 0);
  while (true) {
    get("GET /now HTTP/1.1\r\n\r\n");
    char byte = 0;
    if (::recv(waiting.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) break;
  }
  EXPECT_EQ(parse_http(rest_of(waiting)).body, "first");
  loop_.stop();
  thread_.reset();  // it uses `later`
}

TEST_F(HttpServerTest, ConnectionBeyondTheLimit_ReplacesTheOldest) {
  serve([](const HttpRequest&, const HttpServer::Respond& respond) { respond({.body = "ok"}); });
  std::vector<UniqueFd> idle;
  for (int i = 0; i < HttpLimits().connections; ++i) idle.push_back(connect());
  EXPECT_EQ(parse_http(get("GET / HTTP/1.1\r\n\r\n")).body, "ok");
  EXPECT_EQ(rest_of(idle[0]), "");
  char byte = 0;
  EXPECT_EQ(::recv(idle[1].get(), &byte, 1, MSG_DONTWAIT), -1);  // still open
}

TEST_F(HttpServerTest, AddressWithManyConnections_DoesNotReplaceThoseOfOthers) {
  serve([](const HttpRequest&, const HttpServer::Respond& respond) { respond({.body = "ok"}); });
  const std::string request = "GET / HTTP/1.1\r\n\r\n";
  const UniqueFd slow = connect("127.0.0.2");
  ASSERT_GT(::send(slow.get(), request.data(), 4, MSG_NOSIGNAL), 0);
  std::vector<UniqueFd> idle;
  for (int i = 0; i < 3 * HttpLimits().connections; ++i) idle.push_back(connect());
  EXPECT_EQ(parse_http(get(request, "127.0.0.3")).body, "ok");
  ASSERT_GT(::send(slow.get(), request.data() + 4, request.size() - 4, MSG_NOSIGNAL), 0);
  EXPECT_EQ(parse_http(rest_of(slow)).body, "ok");
}

TEST(ServerSentEvent, EachLineOfTheData_IsAField) {
  EXPECT_EQ(server_sent_event("frame", "{}"), "event: frame\ndata: {}\n\n");
  EXPECT_EQ(server_sent_event("a", "x\ny\r\nevent: b\rz"),
            "event: a\ndata: x\ndata: y\ndata: event: b\ndata: z\n\n");
  EXPECT_EQ(server_sent_event("a", ""), "event: a\ndata: \n\n");
}

TEST(EqualSecrets, OnlyTheSameText_IsEqual) {
  EXPECT_TRUE(equal_secrets("abc", "abc"));
  EXPECT_FALSE(equal_secrets("abc", "abd"));
  EXPECT_FALSE(equal_secrets("abc", "ab"));
  EXPECT_FALSE(equal_secrets("", "a"));
}

// Runs in the loop's thread, and waits for it.
template <typename Work>
auto in_loop(EventLoop& loop, Work work) {
  std::promise<decltype(work())> done;
  loop.post([&] { done.set_value(work()); });
  return done.get_future().get();
}

class HttpStreamTest : public HttpServerTest {
 protected:
  void SetUp() override {
    serve([this](const HttpRequest&, const HttpServer::Respond& respond) {
      respond({.type = "text/event-stream",
               .headers = {{"X-A", "b"}},
               .on_stream = [this](std::shared_ptr<HttpStream> stream) {
                 streams_.push_back(std::move(stream));
               }});
    });
  }
  std::shared_ptr<HttpStream> stream_of(const UniqueFd& socket) {
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    EXPECT_GT(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
    std::shared_ptr<HttpStream> stream;
    while (!stream) {
      stream = in_loop(loop_, [this] { return streams_.empty() ? nullptr : streams_.back(); });
    }
    return stream;
  }
  bool send(const std::shared_ptr<HttpStream>& stream, std::string text) {
    return in_loop(
        loop_, [&] { return stream->send(std::make_shared<const std::string>(std::move(text))); });
  }
  void TearDown() override {
    HttpServerTest::TearDown();
    streams_.clear();
  }
  std::vector<std::shared_ptr<HttpStream>> streams_;
};

TEST_F(HttpStreamTest, WhatIsSent_ArrivesUntilItIsClosed) {
  const UniqueFd socket = connect();
  const auto stream = stream_of(socket);
  EXPECT_TRUE(send(stream, "one "));
  EXPECT_TRUE(send(stream, "two"));
  in_loop(loop_, [&] { return stream->close(), 0; });
  HttpAnswer answer = parse_http(rest_of(socket));
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.headers["Content-Type"], "text/event-stream");
  EXPECT_EQ(answer.headers["X-A"], "b");
  EXPECT_FALSE(answer.headers.contains("Content-Length"));
  EXPECT_EQ(answer.body, "one two");
  EXPECT_FALSE(send(stream, "three"));
}

TEST_F(HttpStreamTest, ClientThatDoesNotRead_GetsNoMoreThanTheQueueHolds) {
  const UniqueFd socket = connect();
  const auto stream = stream_of(socket);
  const std::string piece(HttpStream::kMaxQueued / 8, 'x');
  size_t taken = 0;
  while (send(stream, piece)) ASSERT_LT(++taken, 1000u);  // the kernel's buffers take some
  EXPECT_LE(in_loop(loop_, [&] { return stream->queued(); }), HttpStream::kMaxQueued);
  EXPECT_TRUE(in_loop(loop_, [&] { return stream->open(); }));  // it may read later
}

TEST_F(HttpStreamTest, ClientThatLeaves_ClosesIt) {
  UniqueFd socket = connect();
  const auto stream = stream_of(socket);
  EXPECT_TRUE(send(stream, "one"));
  socket.reset();
  while (in_loop(loop_, [&] { return stream->open(); })) {
  }
  EXPECT_FALSE(send(stream, "two"));
  EXPECT_EQ(in_loop(loop_, [&] { return stream->queued(); }), 0u);
}

// Those who hold the streams notice later.
TEST_F(HttpStreamTest, ManyClientsThatLeave_MakeRoomForOthers) {
  for (int i = 0; i < 3 * HttpLimits().connections; ++i) {
    UniqueFd socket = connect();
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    ASSERT_GT(::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL), 0);
    char byte = 0;
    ASSERT_EQ(::recv(socket.get(), &byte, 1, 0), 1) << i;
    const auto stream = in_loop(loop_, [this] { return streams_.back(); });
    socket.reset();
    while (in_loop(loop_, [&] { return stream->open(); })) {
    }
  }
}

TEST_F(HttpStreamTest, StreamsBeyondTheLimit_AreRefused) {
  std::vector<UniqueFd> open;
  for (int i = 0; i < HttpLimits().connections; ++i) {
    open.push_back(connect());
    stream_of(open.back());
    char byte = 0;
    ASSERT_EQ(::recv(open.back().get(), &byte, 1, 0), 1) << i;
  }
  EXPECT_EQ(parse_http(get("GET / HTTP/1.1\r\n\r\n")).status, 503);
}

TEST_F(HttpServerTest, HostAndCookie_ArePassedOn) {
  serve([](const HttpRequest& request, const HttpServer::Respond& respond) {
    respond({.body = request.host + "|" + request.cookie});
  });
  EXPECT_EQ(parse_http(get("GET / HTTP/1.1\r\nHost: a:1\r\nCookie: b=c\r\n\r\n")).body, "a:1|b=c");
}

TEST_F(HttpServerTest, TakenPort_IsRefused) {
  serve([](const HttpRequest&, const HttpServer::Respond&) {});
  EventLoop loop;
  EXPECT_THAT(thrown_by([&] { HttpServer(loop, "127.0.0.1", port_, {}); }),
              IsError(ErrorCode::kUsage, "127.0.0.1:" + std::to_string(port_)));
}

}  // namespace
}  // namespace fleet
