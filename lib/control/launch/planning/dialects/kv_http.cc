#include "launch/planning/dialects/kv_http.h"

#include <algorithm>
#include <cctype>

#include "base/text.h"

namespace fleet {
namespace {

// Limits of a request head and of a value; the Store accepts no larger value.
constexpr size_t kMaxHead = 64 << 10, kMaxBody = 8u << 20;

bool same_word(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(),
                    [](unsigned char x, char y) { return std::tolower(x) == y; });
}

const char* reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    default:
      return "Service Unavailable";
  }
}

}  // namespace

HttpReader::State HttpReader::add(std::string_view bytes) {
  unread_ += bytes;
  if (!body_size_) {
    const State head = read_head();
    if (head != State::kWhole) return head;
  }
  if (unread_.size() < *body_size_) return State::kMore;
  request_.body = unread_.substr(0, *body_size_);
  return State::kWhole;
}

HttpReader::State HttpReader::read_head() {
  const size_t end = unread_.find("\r\n\r\n");
  if (end == std::string::npos) return unread_.size() > kMaxHead ? State::kBad : State::kMore;
  size_t size = 0;
  bool first = true;
  for (const std::string& line : split(std::string_view(unread_).substr(0, end), '\n')) {
    if (first) {
      const std::vector<std::string> words = split(line, ' ');
      if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) return State::kBad;
      request_.method = words[0];
      request_.path = words[1];
      first = false;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string::npos) return State::kBad;
    if (same_word(line.substr(0, colon), "transfer-encoding")) return State::kBad;
    if (!same_word(line.substr(0, colon), "content-length")) continue;
    long long length = 0;
    if (!parse_int(trim(line.substr(colon + 1)), &length) || length < 0 ||
        length > static_cast<long long>(kMaxBody)) {
      return State::kBad;
    }
    size = static_cast<size_t>(length);
  }
  unread_.erase(0, end + 4);
  body_size_ = size;
  return State::kWhole;
}

std::string http_response(int status, std::string_view body) {
  return "HTTP/1.1 " + std::to_string(status) + " " + reason(status) +
         "\r\nContent-Length: " + std::to_string(body.size()) + "\r\nConnection: close\r\n\r\n" +
         std::string(body);
}

}  // namespace fleet
