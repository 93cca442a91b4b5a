#include "transport/http_message.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <sstream>

namespace fleet {
namespace {

namespace http = boost::beast::http;

constexpr uint32_t kMaxHead = 64 << 10;  // bytes of a request's head

}  // namespace

struct HttpReader::Parser : http::request_parser<http::string_body> {};

HttpReader::HttpReader(uint64_t max_body) : parser_(std::make_unique<Parser>()) {
  parser_->eager(true);
  parser_->header_limit(kMaxHead);
  parser_->body_limit(max_body);
}

HttpReader::~HttpReader() = default;

HttpReader::State HttpReader::add(std::string_view bytes) {
  unread_ += bytes;
  boost::beast::error_code error;
  while (!parser_->is_done() && !unread_.empty()) {
    // Beast asserts that the rest of a body in chunks has this length: "0\r\n\r\n" at least.
    constexpr size_t kMinRest = 5;
    if (parser_->is_header_done() && parser_->chunked() && unread_.size() < kMinRest) break;
    unread_.erase(0, parser_->put(boost::asio::buffer(unread_), error));
    if (error == http::error::need_more) break;
    if (error) return State::kBad;
  }
  // The parser limits a head, and not the line before a chunk or the fields after the last one.
  if (!parser_->is_done()) return unread_.size() > kMaxHead ? State::kBad : State::kMore;
  http::request<http::string_body> request = parser_->release();
  request_ = {std::string(request.method_string()),
              std::string(request.target()),
              std::move(request.body()),
              std::string(request[http::field::authorization]),
              std::string(request[http::field::host]),
              std::string(request[http::field::cookie])};
  return State::kWhole;
}

std::string http_response(int status, std::string_view body, const std::string& type,
                          const HttpHeaders& headers) {
  http::response<http::string_body> response(static_cast<http::status>(status), 11, body);
  if (!type.empty()) response.set(http::field::content_type, type);
  for (const auto& [name, value] : headers) response.set(name, value);
  response.prepare_payload();
  response.keep_alive(false);
  std::ostringstream text;
  text << response;
  return text.str();
}

std::string http_stream_head(const std::string& type, const HttpHeaders& headers) {
  http::response<http::empty_body> response(http::status::ok, 11);
  response.set(http::field::content_type, type);
  for (const auto& [name, value] : headers) response.set(name, value);
  response.keep_alive(false);
  std::ostringstream text;
  text << response.base();
  return text.str();
}

}  // namespace fleet
