// As much of HTTP as a key-value server needs, as pure logic: requests of one message each.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fleet {

struct HttpRequest {
  std::string method, path, body;
  bool operator==(const HttpRequest&) const = default;
};

// Takes a request in pieces.
class HttpReader {
 public:
  enum class State { kMore, kWhole, kBad };
  // `bytes` as they came. After kWhole the request is there; after kBad the connection is to be
  // closed: no HTTP, or larger than a value may be.
  State add(std::string_view bytes);
  const HttpRequest& request() const { return request_; }

 private:
  State read_head();

  std::string unread_;
  HttpRequest request_;
  std::optional<size_t> body_size_;  // once the head is read
};

// "HTTP/1.1 200 OK", the body and its length; the connection is closed after it.
std::string http_response(int status, std::string_view body);

}  // namespace fleet
