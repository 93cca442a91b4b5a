#include "api/world.h"

#include <algorithm>
#include <set>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/factory.h"
#include "store/env.h"
#include "train/choose_strategy.h"
#include "train/device_settings.h"
#include "train/served_job.h"
#include "train/start_comparison.h"

namespace fleet {

int World::node_count() const {
  return std::max<int>(1, static_cast<int>(std::set(nodes.begin(), nodes.end()).size()));
}

std::vector<std::string> servers_from_env() {
  const std::string list = get_env_or_file("PADDLE_PSERVERS_IP_PORT_LIST").value_or("");
  return list.empty() ? std::vector<std::string>() : split(list, ',');
}

// The place of its own address in the list, as in Paddle.
int server_from_env() {
  const std::vector<std::string> servers = servers_from_env();
  const std::string role = env_or("TRAINING_ROLE", "TRAINER");
  if (servers.empty() || role == "TRAINER") return -1;
  if (role != "PSERVER") {
    throw Error(ErrorCode::kUnsupported, "the role " + role + " is not supported",
                "environment TRAINING_ROLE", "it can be TRAINER or PSERVER");
  }
  const std::string host = env_or("POD_IP", ""), port = env_or("PADDLE_PORT", "");
  const bool brackets = host.find(':') != std::string::npos && !host.starts_with('[');
  const std::string own = (brackets ? "[" + host + "]" : host) + ":" + port;
  const auto found = std::ranges::find(servers, own);
  if (found == servers.end()) {
    throw Error(ErrorCode::kUsage,
                "the server at " + own + " (POD_IP, PADDLE_PORT) is not in the list of servers",
                "environment PADDLE_PSERVERS_IP_PORT_LIST", "start it with fleetrun");
  }
  return static_cast<int>(found - servers.begin());
}

World world_from_env() {
  World world;
  world.servers = servers_from_env();
  world.server = server_from_env();
  world.rank = static_cast<int>(env_int_or("PADDLE_TRAINER_ID", 0));
  world.size = static_cast<int>(env_int_or("PADDLE_TRAINERS_NUM", 1));
  for (const std::string& endpoint :
       split(get_env_or_file("PADDLE_TRAINER_ENDPOINTS").value_or(""), ',')) {
    std::string host = endpoint.substr(0, endpoint.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    world.nodes.push_back(host);
  }
  world.store = job_store();
  if (world.server < 0) {
    world.replacement = static_cast<int>(env_int_or(kEnvReplacement, 0));
    world.replaced_step = env_int_or(kEnvReplacedStep, 0);
  }
  if ((world.size > 1 || !world.servers.empty()) && !world.store) {
    throw Error(ErrorCode::kUsage, "no rendezvous for a job of several processes",
                "environment FLEET_STORE_ADDRESS", "start it with fleetrun");
  }
  return world;
}

JobCommunicators make_job_communicators(const Job& job, const World& world, Device& device) {
  JobCommunicators communicators;
  if (trainers_run_apart(job, static_cast<int>(world.servers.size()))) {
    communicators.exchange =
        std::make_shared<StoreExchange>(world.store, world.rank, world.size, timeout_of(job));
  }
  if (world.size == 1) return communicators;
  CommOptions options{
      .rank = world.rank, .size = world.size, .nodes = world.nodes, .store = world.store};
  apply(job.comm, &options);
  StartComparison(compared_items_of_job(job, device.backend()), "job", {world.rank, world.size},
                  *world.store, options.timeout)
      .wait();
  if (communicators.exchange) {
    communicators.compute = make_store_communicator(communicators.exchange);
    return communicators;
  }
  const bool own = !device.communicator().empty();  // which cannot move the host's memory
  if (own && !world.servers.empty()) {
    options.backend = "auto";  // no step of a trainer has a collective: values come from servers
  } else if (own) {
    CommOptions host = options;
    host.group = "control";
    host.backend = "auto";
    communicators.control = make_communicator(host);
    options.device = &device;
  }
  communicators.compute = make_communicator(options);
  if (world.rank == 0) {
    spdlog::info("{} ranks communicate through {}", world.size, communicators.compute->name());
  }
  return communicators;
}

Job make_job_at_start(const ConfigTree& tree, const World& world, Device& device,
                      const JobCommunicators& communicators, bool own_batches,
                      const RunStart& start) {
  ChoosingRanks ranks{.rank = world.rank,
                      .ranks = world.size,
                      .nodes = world.node_count(),
                      .own_batches = own_batches,
                      .start = start,
                      .device = &device,
                      .compute = communicators.compute.get(),
                      .control = communicators.control.get(),
                      .store = world.store.get()};
  if (!world.nodes.empty()) {
    const std::string& own = world.nodes.at(static_cast<size_t>(world.rank));
    ranks.ranks_here = static_cast<int>(std::count(world.nodes.begin(), world.nodes.end(), own));
  }
  return make_job(choose_strategy_at_start(tree, ranks));
}

static DeviceChoice choose(const Job& job, const DeviceRequest& request) {
  return choose_device(request.name, request.index, device_options(job), backend_options(job),
                       request.assigned);
}

static DeviceRequest device_request_of(const Job& job) {
  return device_request(job.train.text("device"), get_env("FLAGS_selected_gpus"),
                        get_env("PADDLE_TRAINER_ID").has_value());
}

DeviceChoice choose_job_device(const Job& job, bool verbose) {
  const DeviceRequest request = device_request_of(job);
  DeviceChoice choice = choose(job, request);
  if (!choice.missing.empty()) {
    throw Error(ErrorCode::kUnsupported, choice.missing + " was asked for: " + choice.reason,
                "train.device (" + job.settings.origin("train.device") + ")",
                "auto uses the CPU if there is no GPU; docs/how-to/gpu.md lists what a GPU needs");
  }
  // A rank that computed on the CPU instead would look like a very slow job.
  if (request.assigned && choice.unusable) {
    throw Error(ErrorCode::kUnsupported,
                "the launcher gave this rank GPU " + std::to_string(request.index) +
                    ", but it cannot use it: " + choice.reason,
                "environment FLAGS_selected_gpus",
                "docs/how-to/gpu.md lists what a GPU needs; train.device=cpu trains on the CPU");
  }
  if (!verbose) return choice;
  if (!request.note.empty()) spdlog::info("training runs on the CPU: {}", request.note);
  if (!choice.note.empty()) spdlog::info("{}", choice.note);
  const auto vain = without_effect(job, choice.device->backend());
  if (!vain.empty()) spdlog::warn("without effect on the CPU: {}", join(vain, ", "));
  return choice;
}

std::string job_backend(const Job& job) { return backend_of_device(device_request_of(job).name); }

DeviceChoice choose_device_to_print(const Job& job) { return choose(job, device_request_of(job)); }

}  // namespace fleet
