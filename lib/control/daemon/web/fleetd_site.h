// fleetd's page: the jobs of its node, and the page of each.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "daemon/node_jobs.h"
#include "daemon/web/job_site.h"
#include "daemon/web/web_config.h"
#include "daemon/web/web_gate.h"
#include "rendezvous/event_loop.h"

namespace fleet {

// Not thread-safe: everything happens in the loop's thread. `jobs` must outlive it.
class FleetdSite {
 public:
  // Throws kUsage if it cannot listen, and if the runtime folder is not private.
  FleetdSite(EventLoop& loop, NodeJobs& jobs, const WebConfig& config);
  // The address of the page, and the file of this user that has it with the token: a log may have
  // other readers.
  std::string address() const;
  const std::string& address_file() const { return address_file_; }

 private:
  HttpServer::Response respond(const HttpRequest& request);
  HttpServer::Response respond_for_job(std::string_view path, const HttpRequest& request);
  void show_jobs();
  void drop_idle_sites();

  EventLoop& loop_;
  NodeJobs& jobs_;
  const WebConfig config_;
  std::string address_file_;
  std::map<int, std::shared_ptr<JobSite>> sites_;  // by the job's number
  EventStreams streams_;
  LoopTimer timer_;
  std::optional<WebGate> gate_;
  HttpServer server_;
};

}  // namespace fleet
