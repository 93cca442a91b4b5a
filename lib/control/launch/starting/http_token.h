// The token of a client of an HTTP server.
#pragma once

#include <string_view>

#include "launch/planning/dialects/kv_http.h"

namespace fleet {

// Whether the request's head has the token: "Authorization: Bearer TOKEN", or as the password of
// "Authorization: Basic", which a browser asks for. Thread-safe.
bool has_token(const HttpRequest& request, std::string_view token);

}  // namespace fleet
