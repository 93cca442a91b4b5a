
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>
#include <fstream>
#include <memory>
#include <vector>

#include "base/thread.h"
#include "tests/errors.h"
#include "transport/certificates.h"
#include "transport/event_loop.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using ::testing::HasSubstr;

Sourced<std::string> file(const std::string& name, const std::string& text) {
  const std::string path = ::testing::TempDir() + "https_test." + name;
  std::ofstream(path) << text;
  ::chmod(path.c_str(), 0600);
  return {path, "--" + name};
}

struct HttpsTest : ::testing::Test {
  HttpsTest() {
    server = std::make_unique<HttpServer>(
        loop, "127.0.0.1", 0,
        [this](const HttpRequest& request, const HttpServer::Respond& respond) {
          if (request.path != "/stream") return respond({.body = "path " + request.path});
          respond({.type = "text/event-stream",
                   .on_stream = [this](std::shared_ptr<HttpStream> stream) {
                     for (const char* piece : {"one ", "two"}) {
                       stream->send(std::make_shared<const std::string>(piece));
                     }
                     stream->close();
                     streams.push_back(std::move(stream));
                   }});
        },
        make_https(file("certificate", pair.chain), file("key", pair.key)));
    thread = std::make_unique<Thread>("loop", [this] { loop.run(); });
  }
  ~HttpsTest() override {
    loop.stop();
    thread.reset();
  }
  tcp::socket connected() {
    tcp::socket socket(clients);
    socket.connect({asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(server->port())});
    return socket;
  }
  // The response, which must end with TLS's own end: nothing was cut off.
  std::string get(const std::string& path) {
    asio::ssl::context context(asio::ssl::context::tls_client);
    context.add_certificate_authority(asio::buffer(pair.authority));
    context.set_verify_mode(asio::ssl::verify_peer);
    asio::ssl::stream<tcp::socket> client(connected(), context);
    client.handshake(asio::ssl::stream_base::client);
    asio::write(client, asio::buffer("GET " + path + " HTTP/1.1\r\n\r\n"));
    std::string response;
    error_code error;
    asio::read(client, asio::dynamic_buffer(response), error);
    EXPECT_EQ(error, asio::error::eof) << error.message();
    return response;
  }

  const Certificates pair = issue_certificates("a secret for this test");
  EventLoop loop;
  asio::io_context clients;
  std::vector<std::shared_ptr<HttpStream>> streams;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<Thread> thread;
};

TEST_F(HttpsTest, Request_GetsTheHandlersResponse) {
  EXPECT_THAT(get("/a"), ::testing::EndsWith("\r\n\r\npath /a"));
}

TEST_F(HttpsTest, Stream_ArrivesWhole) {
  EXPECT_THAT(get("/stream"), ::testing::EndsWith("\r\n\r\none two"));
}

TEST_F(HttpsTest, PlainRequest_GetsNothingAndTheEnd) {
  for (const std::string bytes : {"GET / HTTP/1.1\r\n\r\n", "nonsense", "\x16\x03\x01\x7f\xff"}) {
    tcp::socket socket = connected();
    asio::write(socket, asio::buffer(bytes));
    if (bytes.size() < 8) socket.shutdown(tcp::socket::shutdown_send);  // a part of a greeting
    std::string response;
    error_code error;
    asio::read(socket, asio::dynamic_buffer(response), error);
    EXPECT_THAT(response, ::testing::Not(HasSubstr("path")));
  }
  EXPECT_THAT(get("/b"), HasSubstr("path /b"));
}

TEST_F(HttpsTest, ConnectionsBeforeTheHandshake_AreCounted) {
  std::vector<tcp::socket> idle;
  for (int i = 0; i <= HttpLimits().connections; ++i) idle.push_back(connected());
  char byte = 0;
  error_code error;
  EXPECT_EQ(idle.front().read_some(asio::buffer(&byte, 1), error), 0u);
  EXPECT_EQ(error, asio::error::eof);
}

TEST_F(HttpsTest, FilesOfWindows_AreRead) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_NE(make_https(file("certificate3", mark + pair.chain), file("key3", mark + pair.key)),
            nullptr);
}

TEST_F(HttpsTest, KeyOfAnotherCertificate_IsRefused) {
  const std::string other = issue_certificates("a secret for this test").key;
  EXPECT_THAT(thrown_by([&] { make_https(file("certificate", pair.chain), file("key2", other)); }),
              IsError(ErrorCode::kUsage, HasSubstr("--key2 ")));
}

}  // namespace
}  // namespace fleet
