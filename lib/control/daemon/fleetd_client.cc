#include "daemon/fleetd_client.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "daemon/job_info.h"
#include "daemon/protocol.h"
#include "launch/planning/addresses.h"
#include "launch/planning/node_list.h"
#include "transport/control_messages.h"
#include "transport/validate.h"

namespace fleet {
namespace {

// How long to wait for the first message of a fleetd.
constexpr std::chrono::seconds kResponseTimeout{5};

// Whether the job may continue or still run on other nodes.
bool may_have_more(const JobInfo& job) {
  if (job.phase() != JobInfo::ENDED) return true;
  const JobRecord& record = job.record();
  return job.restarts() && (!record.has_verdict() || node_lost(record.verdict()));
}

// Jobs of this host that were started without a fleetd.
std::vector<JobInfo> other_jobs(const std::vector<JobPart>& known) {
  std::vector<JobInfo> jobs = local_jobs();
  std::erase_if(jobs, [&](const JobInfo& job) {
    return std::any_of(known.begin(), known.end(), [&](const JobPart& part) {
      return part.job.record().pid() == job.record().pid() && job.phase() != JobInfo::ENDED;
    });
  });
  return jobs;
}

// A running job of this host takes precedence over an ended job of a fleetd with the same name.
void add_local(const std::string& name, std::vector<JobPart>* parts) {
  std::vector<JobInfo> jobs = other_jobs(*parts);
  if (!name.empty()) jobs = find_run(name, jobs);
  const auto runs = [](const JobInfo& job) { return job.phase() != JobInfo::ENDED; };
  if (!name.empty() && !parts->empty()) {
    const bool there = std::any_of(parts->begin(), parts->end(),
                                   [&](const JobPart& part) { return runs(part.job); });
    if (there || std::none_of(jobs.begin(), jobs.end(), runs)) return;
    parts->clear();
  }
  for (JobInfo& job : jobs) parts->push_back({"", std::move(job)});
}

}  // namespace

void FleetdCalls::start(const std::string& address, wire::ClientMessage request,
                        const std::function<void(const wire::FleetdMessage&)>& on_event,
                        const std::function<void(const Error&)>& on_error) {
  ++open_;
  Call& own = calls_.emplace_back();
  const auto on_message = [&own, on_error, on_event](const wire::FleetdMessage& message) {
    own.answered = true;
    try {
      validate(message);
      message.has_refused() ? on_error(from_wire(message.refused())) : on_event(message);
    } catch (const Error& error) {
      on_error(error);
    }
  };
  const auto on_closed = [this, &own, on_error, address](const grpc::Status& status) {
    if (own.timed_out) {
      on_error(Error(ErrorCode::kTimeout, "fleetd does not answer", address,
                     "check whether it hangs on that node"));
    } else if (!status.ok()) {
      on_error(error_of(status, address, security_));
    }
    if (--open_ == 0) loop_.stop();
  };
  own.stream = ClientStream::start(loop_, address, security_, std::move(request),
                                   {on_message, [] {}, on_closed});
}

void FleetdCalls::run() {
  response_timer_.after(kResponseTimeout, [this] {
    for (Call& each : calls_) {
      each.timed_out = !each.answered;
      if (each.timed_out) each.stream->cancel();
    }
  });
  if (open_ > 0) loop_.run_until_stopped();
}

void FleetdCalls::pause_reading(bool paused) {
  if (std::exchange(reading_paused_, paused) == paused) return;
  for (const Call& each : calls_) each.stream->pause_reading(paused);
}

void add_fleetd_options(OptionGroup* options) {
  options
      ->texts({.key = "fleetd",
               .environment = {"FLEETD_NODES"},
               .value = "HOST:PORT,...",
               .optional = true},
              "fleetds to query (default: FLEETD_NODES, else this host)")
      .texts({.key = "ips", .value = "LIST", .optional = true, .spread = true},
             "nodes whose fleetds to query, on --fleetd_port")
      .integer({.key = "fleetd_port", .environment = {"FLEETD_PORT"}, .value = "PORT"},
               kDefaultFleetdPort, 1, 65535, "port of the fleetds")
      .text({.key = "fleetd_secret_file", .value = "FILE", .optional = true}, "",
            "file with their secret (default: FLEETD_SECRET, ~/.config/fleetrun/fleetd.secret)");
}

FleetdClient::FleetdClient(const Settings& settings)
    : secret_file_(settings.text("fleetd_secret_file")), given_(true) {
  const auto port = static_cast<int>(settings.integer("fleetd_port"));
  if (settings.given("ips")) {
    for (const ListedNode& node : expand_nodes(join(settings.texts("ips"), ","), "--ips")) {
      addresses_.push_back(endpoint(node.address, port));
    }
    return;
  }
  for (const std::string& entry : settings.texts("fleetd")) {
    addresses_.push_back(split_endpoint(entry).port ? entry : endpoint(entry, port));
  }
  given_ = !addresses_.empty();
  if (!given_) addresses_ = {endpoint("127.0.0.1", port)};
}

const Security& FleetdClient::security() {
  if (!security_) security_ = fleetd_security(secret_file_, false);
  return *security_;
}

std::vector<JobPart> FleetdClient::find(const std::string& job_id) {
  std::vector<JobPart> parts;
  try {
    parts = query(addresses_, job_id);
  } catch (const Error&) {  // no secret, so no fleetd has ever run here
    if (given_) throw;
  }
  // Query the job's other nodes too, if only some were given.
  std::set<std::string> more;
  for (const JobPart& part : parts) {
    if (job_id.empty() || !may_have_more(part.job)) continue;
    more.insert(part.job.nodes().begin(), part.job.nodes().end());
  }
  for (const JobPart& part : parts) {  // by the address that the job uses for the node
    const auto index = static_cast<size_t>(part.job.node_index());
    if (index < static_cast<size_t>(part.job.nodes_size()))
      more.erase(part.job.nodes(part.job.node_index()));
  }
  for (const std::string& asked : addresses_) more.erase(asked);
  for (JobPart& part : query({more.begin(), more.end()}, job_id)) parts.push_back(std::move(part));
  if (!given_) add_local(job_id, &parts);
  std::stable_sort(parts.begin(), parts.end(), [](const JobPart& a, const JobPart& b) {
    return a.job.node_index() < b.job.node_index();
  });
  return parts;
}

std::vector<JobPart> FleetdClient::require(const std::string& job_id) {
  std::vector<JobPart> parts = find(job_id);
  if (!parts.empty()) return parts;
  if (!all_answered()) {
    const bool some = silent_.size() < addresses_.size();
    throw Error(ErrorCode::kIo,
                "its state is unknown: no answer from fleetd at " + join(silent_, ", ") +
                    (some ? ", and the others do not know it" : ""),
                "job " + shown_name(job_id), "start fleetd there, or correct --fleetd or --ips");
  }
  throw Error(ErrorCode::kNotFound, "no such job", "job " + shown_name(job_id),
              given_ ? "fleetrun ls lists the jobs"
                     : "fleetrun ls lists the jobs of this host; add hosts with --fleetd or --ips");
}

std::vector<JobPart> FleetdClient::query(const std::vector<std::string>& addresses,
                                         const std::string& job_id) {
  std::vector<JobPart> parts;
  if (addresses.empty()) return parts;
  FleetdCalls calls(security());
  for (const std::string& address : addresses) {
    wire::ClientMessage request;
    request.mutable_query()->set_job_id(job_id);
    calls.start(
        address, std::move(request),
        [&parts, address](const wire::FleetdMessage& event) {
          for (const JobInfo& job : event.jobs().jobs()) parts.push_back({address, job});
        },
        [this, address](const Error& error) {
          // This host need not have a fleetd, but one that hangs may know the job.
          const bool expected = given_ || error.code() == ErrorCode::kTimeout;
          if (expected) silent_.push_back(address);
          spdlog::log(expected ? spdlog::level::err : spdlog::level::debug, "{}", error.what());
        });
  }
  calls.run();
  return parts;
}

}  // namespace fleet
