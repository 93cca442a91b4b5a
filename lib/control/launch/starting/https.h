// The certificate of an HTTPS server.
#pragma once

#include <memory>
#include <string>

#include "launch/planning/sourced.h"

namespace boost::asio::ssl {
class context;
}

namespace fleet {

using HttpsContext = std::shared_ptr<boost::asio::ssl::context>;

// TLS 1.2 or newer. The files are PEM, and read once: the server's certificate with those that lead
// to its authority, and its private key, which only this user may read. Throws kUsage, naming
// option and file, if they cannot be read or do not belong together.
HttpsContext make_https(const Sourced<std::string>& certificate_file,
                        const Sourced<std::string>& key_file);

}  // namespace fleet
