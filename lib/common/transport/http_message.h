// The part of HTTP that our servers need, without sockets: one request per connection.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fleet {

struct HttpRequest {
  std::string method, path, body;
  // Fields of the head:
  std::string authorization = {};  // "Bearer TOKEN"
  std::string host = {};           // as the client names this server: "127.0.0.1:9400"
  std::string cookie = {};         // "NAME=VALUE; NAME=VALUE"
  bool operator==(const HttpRequest&) const = default;
};

// Parses a request that arrives in pieces (Boost.Beast).
class HttpReader {
 public:
  enum class State { kMore, kWhole, kBad };
  static constexpr uint64_t kMaxBody = 8u << 20;  // the Store accepts no larger value

  // Refuses a request with a body of more than `max_body` bytes, before it has read it.
  explicit HttpReader(uint64_t max_body = kMaxBody);
  ~HttpReader();
  // Adds received bytes. After kWhole the request is complete. After kBad close the connection: the
  // bytes are not HTTP, or exceed the size of a head or body.
  State add(std::string_view bytes);
  const HttpRequest& request() const { return request_; }

 private:
  struct Parser;  // here, it would cost each includer seconds of compilation

  std::unique_ptr<Parser> parser_;
  std::string unread_;  // an incomplete line or chunk
  HttpRequest request_;
};

// "HTTP/1.1 200 OK" with the body and its length. Close the connection after it. `type`: the
// content type; "": not sent.
using HttpHeaders = std::vector<std::pair<std::string, std::string>>;
std::string http_response(int status, std::string_view body, const std::string& type = {},
                          const HttpHeaders& headers = {});
// The same without a length: the body follows until the connection ends.
std::string http_stream_head(const std::string& type, const HttpHeaders& headers);

}  // namespace fleet
