// The part of HTTP that a key-value server needs, without sockets: one request per connection.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace fleet {

struct HttpRequest {
  std::string method, path, body;
  std::string authorization = {};  // of the head: "Bearer TOKEN"
  bool operator==(const HttpRequest&) const = default;
};

// Parses a request that arrives in pieces (Boost.Beast).
class HttpReader {
 public:
  enum class State { kMore, kWhole, kBad };
  HttpReader();
  ~HttpReader();
  // Adds received bytes. After kWhole the request is complete. After kBad close the connection: the
  // bytes are not HTTP, or exceed the size of a value.
  State add(std::string_view bytes);
  const HttpRequest& request() const { return request_; }

 private:
  struct Parser;  // here, it would cost each includer seconds of compilation

  std::unique_ptr<Parser> parser_;
  std::string unread_;  // an incomplete line or chunk
  HttpRequest request_;
};

// "HTTP/1.1 200 OK" with the body and its length. Close the connection after it. `type`: of the
// content; "": not told.
std::string http_response(int status, std::string_view body, const std::string& type = {});

}  // namespace fleet
