// Real fleetds on one machine, at 127.0.0.1 and up, and jobs through them.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "node/reserved_ports.h"
#include "tests/control/launch/jobs/fleetrun_process.h"

namespace fleet {

inline size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct FleetdTest : ::testing::Test {
  explicit FleetdTest(int nodes) : fleetds(static_cast<size_t>(nodes)) {
    port = std::to_string(free_port(fleetds.size()));
    for (int node = 0; node < nodes; ++node) start_fleetd(node);
  }
  static std::string address(size_t node) { return "127.0.0." + std::to_string(node + 1); }
  std::string all_addresses() const {
    std::string all;
    for (size_t node = 0; node < fleetds.size(); ++node) all += (node ? "," : "") + address(node);
    return all;
  }
  // Free at the addresses of all nodes.
  static int free_port(size_t nodes) {
    for (;;) {
      const ReservedPort first = ReservedPort::any(address(0));
      try {
        for (size_t node = 1; node < nodes; ++node) {
          ReservedPort::exactly(address(node), first.port(), "--listen");
        }
        return first.port();
      } catch (const Error&) {  // another's: try another
      }
    }
  }
  void start_fleetd(int number) {
    // The port may be another's for a moment: of a connection, say.
    int attempts = 1;
    while (!listens(number)) ASSERT_LT(attempts++, 100) << fleetds[number]->output();
  }
  bool listens(int number) {
    const auto node = static_cast<size_t>(number);
    const std::string name = "fleetd" + std::to_string(node) + "." + std::to_string(++starts);
    std::vector<std::string> options = {
        "--listen=" + address(node) + ":" + port, "--allow_root",
        "--state_dir=" + job.path() + "/state" + std::to_string(node)};
    options.insert(options.end(), more_options.begin(), more_options.end());
    fleetds[node] = std::make_unique<Fleetrun>(
        job, name, options, Fleetrun::Environment{{"FLEET_RUNTIME_DIR", job.path() + "/" + name}},
        "", "fleetd");
    const auto says = [&](const char* text) {
      return fleetds[node]->output().find(text) != std::string::npos;
    };
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!says("listens on") && !says("cannot listen")) {
      if (std::chrono::steady_clock::now() > end) break;
      ::poll(nullptr, 0, 2);
    }
    return says("listens on");
  }
  // `ips`: "", all nodes.
  std::unique_ptr<Fleetrun> start(const std::string& name, std::vector<std::string> options,
                                  std::vector<std::string> program, const std::string& ips = {},
                                  const Fleetrun::Environment& environment = {}) {
    std::vector<std::string> arguments = {"--via=fleetd", "--fleetd_port=" + port,
                                          "--ips=" + (ips.empty() ? all_addresses() : ips),
                                          "--nproc_per_node=2", "--job_id=" + name};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), program.begin(), program.end());
    return std::make_unique<Fleetrun>(job, name, arguments, environment);
  }
  // Runs a sub-command to its end; what it said, and its code.
  std::string run_command(std::vector<std::string> words, int code = 0) {
    words.push_back("--ips=" + all_addresses());
    words.push_back("--fleetd_port=" + port);
    Fleetrun command(job, "command" + std::to_string(++commands), words);
    EXPECT_EQ(command.wait(), code) << command.output();
    return command.output();
  }
  nlohmann::json status(const std::string& name) {
    return nlohmann::json::parse(run_command({"status", name, "--format=json"}));
  }
  // "running", "stopped (SIGTERM)" of the job as its first node knows it.
  std::string state(const std::string& name) { return status(name).at(0).at("state"); }
  // The names of the jobs that `ls` lists.
  std::vector<std::string> listed_jobs() {
    std::vector<std::string> names;
    for (const auto& one : nlohmann::json::parse(run_command({"ls", "--format=json"}))) {
      names.push_back(one.at("job_id"));
    }
    return names;
  }
  // Starts a script that runs on, and waits for its ranks.
  static std::vector<std::string> endless(const std::string& on = "true") {
    return {"sh", "-c", on + "\n: >$FLEET_JOB_ID.$RANK; while :; do sleep 0.01; done"};
  }
  void wait_for_ranks(const std::string& name, int ranks = 4) const {
    for (int rank = 0; rank < ranks; ++rank) job.wait_for(name + "." + std::to_string(rank));
  }
  // All but the fleetds themselves; those that are still there after a while.
  std::vector<pid_t> left() const {
    std::vector<pid_t> all;
    for (int round = 0; round < 3000; ++round) {
      all = job.processes();
      for (const auto& fleetd : fleetds) {
        if (fleetd) std::erase(all, fleetd->pid());
      }
      if (all.empty()) break;
      ::poll(nullptr, 0, 10);
    }
    return all;
  }

  JobFolder job;
  std::string port;
  std::vector<std::string> more_options;  // of fleetds started from now on
  std::vector<std::unique_ptr<Fleetrun>> fleetds;
  int commands = 0, starts = 0;
};

}  // namespace fleet
