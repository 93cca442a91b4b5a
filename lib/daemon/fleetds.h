// The fleetds that a sub-command of fleetrun asks, and what they say of their jobs.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/error.h"
#include "daemon/job_info.h"
#include "daemon/talk.h"
#include "rendezvous/security.h"

namespace fleet {

// A few conversations, until all are over. Not thread safe.
class Talks {
 public:
  explicit Talks(const Security& security) : security_(security), patience_(loop_) {}
  // A refusal, and what goes wrong with the connection, is `failed`: so is who says nothing at all
  // for a few seconds.
  void start(const std::string& address, Ask ask, std::function<void(const Tell&)> heard,
             std::function<void(const Error&)> failed);
  void run();
  void hold(bool held);  // reads nothing for a while
  boost::asio::io_context& loop() { return loop_; }

 private:
  struct Talk {
    std::shared_ptr<ClientTalk> talk;
    bool heard = false, given_up = false;
  };

  const Security security_;
  boost::asio::io_context loop_{1};
  boost::asio::steady_timer patience_;
  std::deque<Talk> talks_;  // stay where they are
  int open_ = 0;
  bool held_ = false;
};

// One node's part of a job. address: of the fleetd that has it; "": it was started without, here.
struct Part {
  std::string address;
  JobInfo job;
};

// Those that the options name (--fleetd, --ips, --fleetd_port, --fleetd_secret_file), or
// FLEETD_NODES; else this host's, and what runs here without one.
class Fleetds {
 public:
  explicit Fleetds(const Settings& settings);  // kUsage

  const Security& security();  // kUsage where the secret is not known
  bool local() const { return !given_; }
  // Those that were asked so far; why not has been said.
  bool all_answered() const { return all_answered_; }

  // Every part of this job ("": of all jobs) that can be found, by their place in it. Jobs of this
  // host that were started without a fleetd may also be called by a pid or folder (run_called()).
  std::vector<Part> find(const std::string& job_id);
  // The same; kNotFound where there is none.
  std::vector<Part> known(const std::string& job_id);

 private:
  std::vector<Part> query(const std::vector<std::string>& addresses, const std::string& job_id);

  std::vector<std::string> addresses_;
  std::string secret_file_;
  std::optional<Security> security_;
  bool given_ = false, all_answered_ = true;
};

}  // namespace fleet
