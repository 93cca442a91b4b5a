#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>

#include "base/error.h"
#include "base/regular_file.h"
#include "base/text_file.h"
#include "transport/security.h"
#include "viewing/web/web_config.h"

namespace fleet {
namespace {

namespace asio = boost::asio;
using asio::ssl::context;

constexpr int64_t kMaxBytes = 1 << 20;  // a certificate with its chain

// Whatever keeps the file from being read is the user's to correct.
template <typename Read>
std::string text_of(const Sourced<std::string>& file, Read read) {
  try {
    return read(file.value);
  } catch (const Error& error) {
    refuse(error.failure(), file.with(file.value), error.next());
  }
}

void check(const boost::system::error_code& error, const std::string& what,
           const Sourced<std::string>& file, const std::string& next) {
  if (error) refuse(what + " (" + error.message() + ")", file.with(file.value), next);
}

}  // namespace

HttpsContext make_https(const Sourced<std::string>& certificate_file,
                        const Sourced<std::string>& key_file) {
  const std::string chain = text_of(certificate_file, [](const std::string& path) {
    return plain_text(read_small_file(path, kMaxBytes), path);
  });
  const std::string key = text_of(key_file, read_private_file);
  auto https = std::make_shared<context>(context::tls_server);
  https->set_options(context::default_workarounds | context::no_tlsv1 | context::no_tlsv1_1 |
                     context::no_compression | static_cast<long>(SSL_OP_NO_RENEGOTIATION));
  // Otherwise OpenSSL would ask the terminal for the password of an encrypted key.
  https->set_password_callback([](size_t, context::password_purpose) { return std::string(); });
  boost::system::error_code error;
  https->use_certificate_chain(asio::buffer(chain), error);
  check(error, "it has no certificate", certificate_file,
        "give a file in PEM that begins with the server's certificate");
  https->use_private_key(asio::buffer(key), context::pem, error);
  check(error, "it is not the private key of the certificate", key_file,
        "give that key in PEM, without a password");
  return https;
}

}  // namespace fleet
