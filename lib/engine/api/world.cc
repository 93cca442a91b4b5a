#include "api/world.h"

#include <algorithm>
#include <set>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/factory.h"
#include "train/choose_strategy.h"
#include "train/device_settings.h"
#include "train/start_comparison.h"

namespace fleet {

int World::node_count() const {
  return std::max<int>(1, static_cast<int>(std::set(nodes.begin(), nodes.end()).size()));
}

World world_from_env() {
  World world;
  world.rank = static_cast<int>(env_int_or("PADDLE_TRAINER_ID", 0));
  world.size = static_cast<int>(env_int_or("PADDLE_TRAINERS_NUM", 1));
  for (const std::string& endpoint :
       split(get_env_or_file("PADDLE_TRAINER_ENDPOINTS").value_or(""), ',')) {
    std::string host = endpoint.substr(0, endpoint.rfind(':'));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    world.nodes.push_back(host);
  }
  world.store = job_store();
  if (world.size > 1 && !world.store) {
    throw Error(ErrorCode::kUsage, "no rendezvous for a job of several ranks",
                "environment FLEET_STORE_ADDRESS", "start it with fleetrun");
  }
  return world;
}

JobCommunicators make_job_communicators(const Job& job, const World& world, Device& device) {
  JobCommunicators communicators;
  if (world.size == 1) return communicators;
  CommOptions options{
      .rank = world.rank, .size = world.size, .nodes = world.nodes, .store = world.store};
  apply(job.comm, &options);
  StartComparison(compared_items_of_job(job, device.backend()), "job", {world.rank, world.size},
                  *world.store, options.timeout)
      .wait();
  if (!device.communicator().empty()) {  // which cannot move the host's memory
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
