// Which requests a page answers: those of a browser that has the token. Pure.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "launch/starting/http_server.h"

namespace fleet {

// The path of a request without its "?NAME=VALUE&...", and a value of that; "" if it is missing.
std::string path_of_request(const HttpRequest& request);
std::string query_value(const HttpRequest& request, std::string_view name);

class WebGate {
 public:
  // `port`: of the server, in the name of its cookie: cookies do not distinguish ports.
  // `tls`: the page is served by HTTPS.
  WebGate(std::string token, int port, bool tls)
      : token_(std::move(token)), port_(port), tls_(tls) {}

  // The response to a request: that of `page` if it is let in.
  HttpServer::Response respond(const HttpRequest& request,
                               const std::function<HttpServer::Response()>& page) const;
  // The response to a request that is not let in; nullopt: answer it. Refuses everything but GET,
  // requests without the token and, without TLS, names of this server that a stranger's site could
  // choose (DNS rebinding): with TLS, such a site lacks the certificate. An address with the token
  // leads to the same one without it, and sets a cookie.
  std::optional<HttpServer::Response> check(const HttpRequest& request) const;
  // Adds what each response needs: it is not kept, and loads nothing from elsewhere.
  static HttpServer::Response guarded(HttpServer::Response response);

 private:
  std::string cookie_name() const { return "fleetrun_" + std::to_string(port_); }
  std::pair<std::string, std::string> set_cookie() const;
  bool has_cookie(std::string_view cookies) const;

  const std::string token_;
  const int port_;
  const bool tls_;
};

}  // namespace fleet
