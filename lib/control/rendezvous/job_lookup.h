// Asks rendezvous hosts which jobs they serve.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "proto/control.pb.h"
#include "transport/control_messages.h"
#include "transport/security.h"

namespace fleet {

using DescribeDone = std::function<void(const std::optional<wire::DescribeReply>& reply)>;

// Asks the rendezvous at `address` and returns at once. `done` runs once, on a thread of gRPC,
// within `timeout`; nullopt: no answer.
void ask_rendezvous(const std::string& address, const Security& security,
                    std::chrono::milliseconds timeout, DescribeDone done);

// Whether this job has begun there and has not ended.
bool runs_job(const std::optional<wire::DescribeReply>& reply, const std::string& job_id);

// The first of `addresses` ("10.0.0.2:6768") whose rendezvous runs this job; "" if none does. Asks
// all in parallel; takes at most `timeout`.
std::string find_running_job(const std::vector<std::string>& addresses, const std::string& job_id,
                             const Security& security, std::chrono::milliseconds timeout);

}  // namespace fleet
