// A small HTTP server in the launcher's loop: one request per connection. For metrics and pages
// that a user asks for; it is never open unless an option names its address.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "launch/planning/dialects/kv_http.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread.
class HttpServer {
 public:
  struct Response {
    int status = 200;
    std::string type = "text/plain; charset=utf-8";
    std::string body;
  };
  // Calls back once, now or later; later ones, and those after the connection is gone, are ignored.
  using Respond = std::function<void(Response)>;
  using Handler = std::function<void(const HttpRequest& request, Respond respond)>;

  // At most this many connections at once, each for at most so long: strangers may reach the port.
  static constexpr int kMostConnections = 32;
  static constexpr int kSeconds = 10;

  // Throws kUsage if it cannot listen at `address`, a numeric one. Port 0: any.
  HttpServer(boost::asio::io_context& loop, const std::string& address, int port, Handler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  int port() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace fleet
