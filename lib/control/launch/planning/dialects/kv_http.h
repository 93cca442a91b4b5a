// The part of HTTP that a key-value server needs, as pure logic: one request per connection.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fleet {

struct HttpRequest {
  std::string method, path, body;
  bool operator==(const HttpRequest&) const = default;
};

// Parses a request that arrives in pieces.
class HttpReader {
 public:
  enum class State { kMore, kWhole, kBad };
  // Adds received bytes. After kWhole the request is complete. After kBad close the connection: the
  // bytes are not HTTP, or exceed the size of a value.
  State add(std::string_view bytes);
  const HttpRequest& request() const { return request_; }

 private:
  State read_head();

  std::string unread_;
  HttpRequest request_;
  std::optional<size_t> body_size_;  // set once the head is read
};

// "HTTP/1.1 200 OK" with the body and its length. Close the connection after it.
std::string http_response(int status, std::string_view body);

}  // namespace fleet
