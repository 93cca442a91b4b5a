#include <algorithm>

#include "launch/planning/addresses.h"
#include "transport/http_server.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

// A name that only this machine has, with any port: a tunnel may have another one.
bool is_own_name(const std::string& host) {
  const std::string name = split_endpoint(host).host;
  return name == "localhost" || is_loopback(name);
}

}  // namespace

std::string path_of_request(const HttpRequest& request) {
  return request.path.substr(0, request.path.find('?'));
}

std::string query_value(const HttpRequest& request, std::string_view name) {
  std::string_view rest = request.path;
  const size_t begin = rest.find('?');
  if (begin == std::string_view::npos) return {};
  rest.remove_prefix(begin + 1);
  for (;;) {
    const size_t end = std::min(rest.find('&'), rest.size());
    const std::string_view pair = rest.substr(0, end);
    const size_t equals = pair.find('=');
    if (equals != std::string_view::npos && pair.substr(0, equals) == name) {
      return std::string(pair.substr(equals + 1));
    }
    if (end == rest.size()) return {};
    rest.remove_prefix(end + 1);
  }
}

bool WebGate::has_cookie(std::string_view cookies) const {
  const std::string prefix = cookie_name() + "=";
  while (!cookies.empty()) {
    const size_t end = std::min(cookies.find(';'), cookies.size());
    std::string_view one = cookies.substr(0, end);
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    if (one.starts_with(prefix) && equal_secrets(one.substr(prefix.size()), token_)) return true;
    cookies.remove_prefix(std::min(end + 1, cookies.size()));
  }
  return false;
}

std::optional<HttpServer::Response> WebGate::check(const HttpRequest& request) const {
  if (!tls_ && !is_own_name(request.host)) {
    return HttpServer::Response{.status = 403, .body = "use the address 127.0.0.1\n"};
  }
  if (request.method != "GET") return HttpServer::Response{.status = 405, .body = "use GET\n"};
  if (has_cookie(request.cookie) || has_token(request, token_)) return std::nullopt;
  if (equal_secrets(query_value(request, "token"), token_)) {
    return HttpServer::Response{.status = 303,
                                .headers = {{"Location", path_of_request(request)}, set_cookie()}};
  }
  HttpServer::Response refused{
      .status = 401,
      .body = "Open the address with the token, as the terminal or the log shows it.\n"};
  // A browser then asks for a password. Without TLS it would be sent in plain text.
  if (tls_) refused.headers = {{"WWW-Authenticate", "Basic realm=\"fleetrun\""}};
  return refused;
}

std::pair<std::string, std::string> WebGate::set_cookie() const {
  return {"Set-Cookie", cookie_name() + "=" + token_ + "; Path=/; HttpOnly; SameSite=Strict" +
                            (tls_ ? "; Secure" : "")};
}

HttpServer::Response WebGate::respond(const HttpRequest& request,
                                      const std::function<HttpServer::Response()>& page) const {
  if (auto refused = check(request)) return guarded(*std::move(refused));
  HttpServer::Response response = page();
  if (!has_cookie(request.cookie)) response.headers.push_back(set_cookie());  // it has a password
  return guarded(std::move(response));
}

HttpServer::Response WebGate::guarded(HttpServer::Response response) {
  response.headers.insert(
      response.headers.end(),
      {{"Cache-Control", "no-store"},
       {"Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
        "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
       {"Cross-Origin-Resource-Policy", "same-origin"},
       {"Referrer-Policy", "no-referrer"},
       {"X-Content-Type-Options", "nosniff"}});
  return response;
}

}  // namespace fleet
