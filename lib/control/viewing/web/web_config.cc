#include "viewing/web/web_config.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "launch/planning/addresses.h"
#include "launch/planning/launch_config.h"
#include "launch/planning/refuse.h"
#include "transport/http_server.h"
#include "transport/security.h"

namespace fleet {
namespace {

constexpr char kCertificate[] = "web_certificate", kKey[] = "web_key", kToken[] = "web_token_file";

// A token is part of an address and of a cookie.
std::string checked_token(const std::string& file, const std::string& where) {
  std::string token;
  try {
    token = read_secret(file);
  } catch (const Error& error) {
    refuse(error.failure(), where, error.next());
  }
  const bool plain = std::ranges::all_of(token, [](unsigned char c) {
    return c < 0x80 && (std::isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~');
  });
  if (!plain) {
    refuse("a token of a page has only letters, digits, and -_.~", where,
           "`fleetrun secret --new` prints one");
  }
  return token;
}

void refuse_unprotected(const Settings& settings, const std::string& text, int port) {
  std::string missing;
  for (const std::string key : {kCertificate, kKey, kToken}) {
    if (!settings.given(key)) missing += (missing.empty() ? "--" : ", --") + key;
  }
  if (missing.empty()) return;
  const std::string local = "127.0.0.1:" + std::to_string(port > 0 ? port : 9401);
  refuse("other machines could read " + text + ": it needs TLS and a token, and lacks " + missing,
         settings.origin("web"),
         "add that, or listen at " + local + ", and from elsewhere use ssh -L " +
             split_endpoint(local).port.value() + ":" + local + " " + host_name());
}

// A name that only this machine has, with any port: a tunnel may have another one.
bool is_own_name(const std::string& host) {
  const std::string name = split_endpoint(host).host;
  return name == "localhost" || is_loopback(name);
}

}  // namespace

std::string WebConfig::url(int actual_port) const {
  const bool any = address == "0.0.0.0" || address == "::";
  return (https ? "https://" : "http://") + endpoint(any ? host_name() : address, actual_port) +
         "/";
}

void add_web_options(const std::string& implied, const std::string& help, OptionGroup* options) {
  options
      ->text({.key = "web", .value = "127.0.0.1:PORT", .optional = true, .implied = implied}, "",
             help)
      .text({.key = kCertificate, .value = "FILE", .optional = true}, "",
            "PEM certificate of the page, for https; required to serve other machines")
      .text({.key = kKey, .value = "FILE", .optional = true}, "",
            "private key of the certificate, readable only by you")
      .text({.key = kToken, .value = "FILE", .optional = true}, "",
            "file with the page's token; required to serve other machines (default: a new token)");
}

WebConfig read_web_config(const Settings& settings) {
  WebConfig config;
  if (!settings.given("web")) {
    for (const char* key : {kCertificate, kKey, kToken}) {
      if (settings.given(key)) {
        refuse("it has no effect without --web", settings.origin(key), "add --web");
      }
    }
    return config;
  }
  config.address = read_listen_address(settings, "web", 9401, 0, &config.port);
  if (!is_loopback(config.address)) {
    refuse_unprotected(settings, settings.text("web"), config.port);
  }
  const auto certificate = sourced(settings, kCertificate, settings.text(kCertificate));
  const auto key = sourced(settings, kKey, settings.text(kKey));
  if (settings.given(kCertificate) != settings.given(kKey)) {
    refuse("a certificate needs its key", settings.given(kKey) ? key.origin : certificate.origin,
           std::string("add --") + (settings.given(kKey) ? kCertificate : kKey));
  }
  if (settings.given(kKey)) config.https = make_https(certificate, key);
  config.token_file = settings.text(kToken);
  config.token =
      config.token_file.empty()
          ? new_secret().substr(0, 32)
          : checked_token(config.token_file, settings.origin(kToken) + " " + config.token_file);
  return config;
}

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
