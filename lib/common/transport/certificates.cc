#include "transport/certificates.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <sys/socket.h>

#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "transport/local_socket.h"
#include "transport/tcp_listener.h"

namespace fleet {
namespace {

constexpr char kSalt[] = "fleetrun control plane 1";
constexpr char kIssuerPrefix[] = "fleetrun ";

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Freer<X509_EXTENSION_free>>;
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Context = std::unique_ptr<SSL_CTX, Freer<SSL_CTX_free>>;
using Connection = std::unique_ptr<SSL, Freer<SSL_free>>;

template <typename T>
T need(T result, const char* what) {
  if (result) return result;
  char reason[256] = "no reason given";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, reason, sizeof reason);
  throw Error(ErrorCode::kInternal, std::string(what) + " failed (" + reason + ")", "OpenSSL");
}

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Key authority_key(const std::string& secret) {
  const std::string seed = derive_key(secret, kSalt, "authority");
  return Key(
      need(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, bytes_of(seed), seed.size()),
           "making the authority's key"));
}

std::string id_of(EVP_PKEY* authority) {
  unsigned char key[32], digest[EVP_MAX_MD_SIZE];
  size_t size = sizeof key;
  need(EVP_PKEY_get_raw_public_key(authority, key, &size), "reading the authority's key");
  need(EVP_Digest(key, size, digest, nullptr, EVP_sha256(), nullptr), "SHA-256");
  return hex({reinterpret_cast<char*>(digest), 4});
}

void set_name(X509_NAME* name, const std::string& text) {
  need(X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8, bytes_of(text),
                                  static_cast<int>(text.size()), -1, 0),
       "naming a certificate");
}

void extend(X509* certificate, int nid, const char* value) {
  const Extension extension(
      need(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value), "making an extension"));
  need(X509_add_ext(certificate, extension.get(), -1), "adding an extension");
}

// The fields that both kinds of certificate share. `issuer`: the authority's name.
Certificate blank(EVP_PKEY* key, const std::string& issuer, const std::string& subject) {
  Certificate certificate(need(X509_new(), "making a certificate"));
  X509* x509 = certificate.get();
  need(X509_set_version(x509, 2), "setting a version");  // 2 means v3
  uint64_t serial = 0;
  need(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "RAND_bytes");
  need(ASN1_INTEGER_set_uint64(X509_get_serialNumber(x509), serial >> 1 | 1), "setting a number");
  set_name(X509_get_issuer_name(x509), issuer);
  set_name(X509_get_subject_name(x509), subject);
  need(X509_set_pubkey(x509, key), "setting a key");
  return certificate;
}

Certificate issue_authority(EVP_PKEY* key, const std::string& name) {
  Certificate certificate = blank(key, name, name);
  need(ASN1_TIME_set_string(X509_getm_notBefore(certificate.get()), "20200101000000Z"), "a time");
  need(ASN1_TIME_set_string(X509_getm_notAfter(certificate.get()), "99991231235959Z"), "a time");
  extend(certificate.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  extend(certificate.get(), NID_key_usage, "critical,keyCertSign");
  need(X509_sign(certificate.get(), key, nullptr), "signing");
  return certificate;
}

Certificate issue_leaf(EVP_PKEY* key, EVP_PKEY* authority, const std::string& issuer) {
  Certificate certificate = blank(key, issuer, kCertificateName);
  constexpr long kDay = 24 * 3600;
  const long life = std::chrono::duration_cast<std::chrono::seconds>(kCertificateLife).count();
  need(X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -kDay), "a time");
  need(X509_gmtime_adj(X509_getm_notAfter(certificate.get()), life), "a time");
  extend(certificate.get(), NID_basic_constraints, "critical,CA:FALSE");
  extend(certificate.get(), NID_key_usage, "critical,digitalSignature");
  extend(certificate.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  extend(certificate.get(), NID_subject_alt_name, (std::string("DNS:") + kCertificateName).c_str());
  need(X509_sign(certificate.get(), authority, nullptr), "signing");
  return certificate;
}

template <typename Write>
std::string pem(Write write) {
  const Bio bio(need(BIO_new(BIO_s_mem()), "making a buffer"));
  need(write(bio.get()), "writing PEM");
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(size)};
}

std::string pem(X509* certificate) {
  return pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

// OpenSSL's writes to sockets may raise SIGPIPE in this thread.
class BrokenPipesIgnored {
 public:
  BrokenPipesIgnored() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~BrokenPipesIgnored() {
    const timespec now{};
    if (!::sigismember(&before_, SIGPIPE)) ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  BrokenPipesIgnored(const BrokenPipesIgnored&) = delete;

 private:
  sigset_t pipe_, before_;
};

UniqueFd connect_to(const std::string& address, std::chrono::milliseconds timeout) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {};
  const Addresses found =
      addresses_of(address.substr(0, colon), address.substr(colon + 1), SOCK_STREAM, 0);
  for (const addrinfo* one = found.get(); one; one = one->ai_next) {
    UniqueFd fd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{timeout.count() / 1000, timeout.count() % 1000 * 1000};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);  // limits connect() too
    if (::connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
  }
  return {};
}

constexpr std::chrono::milliseconds kProbeTimeout{1'000};

}  // namespace

std::string hmac_sha256(std::string_view key, std::string_view message) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  need(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(message),
            message.size(), out, &size),
       "HMAC");
  return {reinterpret_cast<char*>(out), size};
}

std::string derive_key(std::string_view secret, std::string_view salt, std::string_view info) {
  return hmac_sha256(hmac_sha256(salt, secret), std::string(info) + '\x01');
}

Certificates issue_certificates(const std::string& secret) {
  const Key authority = authority_key(secret);
  const std::string issuer = kIssuerPrefix + id_of(authority.get());
  const Key key(need(EVP_EC_gen("P-256"), "making a key"));
  Certificates all;
  all.authority = pem(issue_authority(authority.get(), issuer).get());
  all.chain = pem(issue_leaf(key.get(), authority.get(), issuer).get());
  all.key = pem([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  });
  return all;
}

std::string secret_id(const std::string& secret) { return id_of(authority_key(secret).get()); }

Listener probe_listener(const std::string& address, std::chrono::milliseconds timeout) {
  Listener listener;
  const UniqueFd fd = connect_to(address, timeout);
  if (!fd) return listener;
  const Context context(need(SSL_CTX_new(TLS_client_method()), "making a context"));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  const Connection connection(need(SSL_new(context.get()), "making a connection"));
  constexpr unsigned char kHttp2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(connection.get(), kHttp2, sizeof kHttp2);
  need(SSL_set_fd(connection.get(), fd.get()), "using a socket");
  ERR_clear_error();
  const BrokenPipesIgnored quiet;
  if (SSL_connect(connection.get()) != 1) {
    const bool answered = ERR_GET_REASON(ERR_peek_error()) == SSL_R_WRONG_VERSION_NUMBER;
    if (answered) listener.kind = Listener::Kind::kPlain;
    ERR_clear_error();
    return listener;
  }
  listener.kind = Listener::Kind::kTls;
  const Certificate certificate(SSL_get1_peer_certificate(connection.get()));
  char issuer[64] = {};
  X509_NAME_get_text_by_NID(X509_get_issuer_name(certificate.get()), NID_commonName, issuer,
                            sizeof issuer);
  if (std::string_view(issuer).starts_with(kIssuerPrefix)) {
    listener.secret_id = issuer + sizeof kIssuerPrefix - 1;
  }
  listener.valid_now = X509_cmp_current_time(X509_get0_notBefore(certificate.get())) < 0 &&
                       X509_cmp_current_time(X509_get0_notAfter(certificate.get())) > 0;
  return listener;
}

std::optional<Error> find_security_mismatch(const std::string& address, const Security& ours) {
  if (is_local_address(address)) return std::nullopt;  // it has no secret
  const Listener there = probe_listener(address, kProbeTimeout);
  const auto error = [&](const std::string& what, const std::string& next) {
    return Error(ErrorCode::kUsage, what, "the rendezvous on node 0 at " + address, next);
  };
  if (there.kind == Listener::Kind::kNothing) return std::nullopt;
  if (!ours.tls) {
    if (there.kind == Listener::Kind::kPlain) return std::nullopt;
    return error("it requires the job's secret, but this node runs with --insecure",
                 "give --insecure on every node or on none");
  }
  if (there.kind == Listener::Kind::kPlain) {
    return error("it has no TLS, but this node does not run with --insecure",
                 "give --insecure on every node or on none; or does another program listen "
                 "there?");
  }
  if (there.secret_id.empty()) {
    return error("the server there is not a fleetrun rendezvous",
                 "check --master, --ips and --rdzv_port");
  }
  const std::string own = secret_id(ours.secret);
  if (there.secret_id != own) {
    return error(
        "this node's secret (" + own + ", from " + ours.origin + ") is not the job's (" +
            there.secret_id + ")",
        "copy node 0's: `fleetrun secret --show` there prints it; every node takes it from "
        "FLEET_JOB_SECRET, --secret_file or its own ~/.config/fleetrun/secret");
  }
  if (!there.valid_now) {
    return error("its certificate is not valid at this host's time",
                 "set the clocks: they may differ by at most a day");
  }
  return std::nullopt;
}

}  // namespace fleet
