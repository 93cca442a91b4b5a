#include "rendezvous/security_mismatch.h"

#include "rendezvous/certificates.h"
#include "rendezvous/local_socket.h"

namespace fleet {
namespace {

constexpr std::chrono::milliseconds kProbeTimeout{1'000};

}  // namespace

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
