// A small HTTP or HTTPS server in a loop: one request per connection. For metrics and pages that a
// user asks for, and for ranks on loopback; it is never open to others unless an option names its
// address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "transport/event_loop.h"
#include "transport/http_message.h"

namespace boost::asio::ssl {
class context;
}

namespace fleet {

using HttpsContext = std::shared_ptr<boost::asio::ssl::context>;

// A response that continues until one of the two ends it. Not thread-safe.
class HttpStream {
 public:
  // More than this is never held for a client that does not read, except for one larger message.
  static constexpr size_t kMaxQueued = 1 << 20;
  // A client that takes nothing for this long is gone.
  static constexpr int kSilentSeconds = 30;

  virtual ~HttpStream() = default;
  virtual bool open() const = 0;
  virtual size_t queued() const = 0;  // bytes
  // False if it is left out: the client is gone, or too far behind.
  virtual bool send(std::shared_ptr<const std::string> bytes) = 0;
  virtual void close() = 0;
};

// A message of a stream of the type text/event-stream (Server-Sent Events): each line of `data`
// becomes a field.
std::string server_sent_event(std::string_view event, std::string_view data);

// Takes the same time for every text of this length: for tokens.
bool equal_secrets(std::string_view one, std::string_view other);

// Strangers may reach the port, so a connection must become a stream or end within `seconds`, TLS's
// handshake included. At most `connections` do so at once: a further one replaces the oldest of the
// address that has the most. There are at most as many streams.
struct HttpLimits {
  int connections = 32;
  int seconds = 10;
  uint64_t body = 64 << 10;  // bytes: it is read before the handler can refuse the request
};

// Not thread-safe: everything happens in the loop's thread.
class HttpServer {
 public:
  struct Response {
    int status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body;
    HttpHeaders headers = {};
    // If set, the body is what this sends.
    std::function<void(std::shared_ptr<HttpStream>)> on_stream = {};
  };
  // Calls back once, now or later; later ones, and those after the connection is gone, are ignored.
  using Respond = std::function<void(Response)>;
  using Handler = std::function<void(const HttpRequest& request, Respond respond)>;

  // Throws kUsage if it cannot listen at `address`, a numeric one. Port 0: any. Without `https` it
  // speaks plain HTTP, otherwise only TLS.
  HttpServer(EventLoop& loop, const std::string& address, int port, Handler handler,
             HttpsContext https = nullptr, const HttpLimits& limits = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  int port() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// Whether the request's head has the token: "Authorization: Bearer TOKEN", or as the password of
// "Authorization: Basic", which a browser asks for. Thread-safe.
bool has_token(const HttpRequest& request, std::string_view token);

}  // namespace fleet
