// --web: where a page is served, and what protects it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/config.h"
#include "base/option_group.h"
#include "launch/planning/refuse.h"
#include "transport/http_server.h"

namespace fleet {

// TLS 1.2 or newer. The files are PEM, and read once: the server's certificate with those that lead
// to its authority, and its private key, which only this user may read. Throws kUsage, naming
// option and file, if they cannot be read or do not belong together.
HttpsContext make_https(const Sourced<std::string>& certificate_file,
                        const Sourced<std::string>& key_file);

struct WebConfig {
  std::string address;     // numeric; "": nowhere
  int port = 0;            // 0: any
  HttpsContext https;      // nullptr: plain HTTP
  std::string token;       // that of token_file, else a new one
  std::string token_file;  // "": not given

  bool wanted() const { return !address.empty(); }
  // "https://node1:9401/", as a browser asks for it.
  std::string url(int actual_port) const;
};

// --web[=127.0.0.1:PORT], and the options of its TLS and token. `implied`: the value of --web
// alone.
void add_web_options(const std::string& implied, const std::string& help, OptionGroup* options);
// kUsage for an address that is not one, for one that other machines can reach without TLS and a
// token, and for files that cannot be used.
WebConfig read_web_config(const Settings& settings);

// The path of a request without its "?NAME=VALUE&...", and a value of that; "" if it is missing.
std::string path_of_request(const HttpRequest& request);
std::string query_value(const HttpRequest& request, std::string_view name);

// Which requests a page answers: those of a browser that has the token. Pure.
class WebGate {
 public:
  // `port`: the server's, for the name of its cookie, because cookies do not distinguish ports.
  // `tls`: the page is served by HTTPS.
  WebGate(std::string token, int port, bool tls)
      : token_(std::move(token)), port_(port), tls_(tls) {}

  // The response to a request: that of `page` if it is let in.
  HttpServer::Response respond(const HttpRequest& request,
                               const std::function<HttpServer::Response()>& page) const;
  // The response to a request that is not let in; nullopt: answer it. Refuses everything but GET,
  // requests without the token and, without TLS, names of this server that a foreign site could
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
