#include "rendezvous/credentials.h"

#include <grpc/grpc_security.h>

#include <chrono>
#include <vector>

#include "base/clock.h"
#include "base/mutex.h"
#include "rendezvous/certificates.h"

namespace fleet {
namespace {

// One certificate serves all connections that a process opens within a day.
Certificates own_certificates(const std::string& secret) {
  constexpr double kDay = 24 * 3600;
  static Mutex mutex;
  static auto* const kept FLEET_PT_GUARDED_BY(mutex) = new Certificates;
  static auto* const kept_for FLEET_PT_GUARDED_BY(mutex) = new std::string;
  static double until FLEET_GUARDED_BY(mutex) = 0;
  const double now = monotonic_seconds();
  const MutexLock lock(mutex);
  if (now >= until || *kept_for != secret) {
    *kept = issue_certificates(secret);
    *kept_for = secret;
    until = now + kDay;
  }
  return *kept;
}

// The server's certificate, renewed before it expires: a server may outlive one.
class ServerCertificate {
 public:
  explicit ServerCertificate(std::string secret) : secret_(std::move(secret)) {}

  // gRPC calls this at each handshake, from any thread.
  static grpc_ssl_certificate_config_reload_status fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    return static_cast<ServerCertificate*>(self)->renew(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status renew(grpc_ssl_server_certificate_config** config) {
    const double now = monotonic_seconds();
    const MutexLock lock(mutex_);
    if (now < renew_at_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    try {
      const Certificates certificates = own_certificates(secret_);
      const grpc_ssl_pem_key_cert_pair pair{certificates.key.c_str(), certificates.chain.c_str()};
      *config = grpc_ssl_server_certificate_config_create(certificates.authority.c_str(), &pair, 1);
    } catch (const std::exception&) {
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_FAIL;
    }
    renew_at_ = now + std::chrono::duration<double>(kCertificateLife / 2).count();
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const std::string secret_;
  Mutex mutex_;
  double renew_at_ FLEET_GUARDED_BY(mutex_) = 0;
};

// gRPC's C functions can renew certificates; its C++ classes cannot.
class TlsServerCredentials final : public grpc::ServerCredentials {
 public:
  // gRPC may ask for a certificate until the last connection of a server has gone, and does not
  // report that moment. The certificate therefore lives as long as the process.
  explicit TlsServerCredentials(const std::string& secret) {
    static Mutex mutex;
    static auto* const kept FLEET_PT_GUARDED_BY(mutex) =
        new std::vector<std::unique_ptr<ServerCertificate>>;
    const MutexLock lock(mutex);
    kept->push_back(std::make_unique<ServerCertificate>(secret));
    credentials_ = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY, &ServerCertificate::fetch,
            kept->back().get()));
  }
  ~TlsServerCredentials() override { grpc_server_credentials_release(credentials_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* credentials_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> server_credentials(const Security& security) {
  if (security.open()) return grpc::InsecureServerCredentials();
  return std::make_shared<TlsServerCredentials>(security.secret);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const Security& security) {
  if (security.open()) return grpc::InsecureChannelCredentials();
  const Certificates certificates = own_certificates(security.secret);
  return grpc::SslCredentials({certificates.authority, certificates.key, certificates.chain});
}

}  // namespace fleet
