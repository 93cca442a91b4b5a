// Dialects: the environment variables through which each ecosystem tells its programs their rank
// and peers. One file per dialect:
//   FLEET_DIALECT(jax) { def.variables = ...; }
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/config.h"
#include "base/registry.h"
#include "launch/planning/environment.h"
#include "node/rank_service.h"
#include "transport/event_loop.h"

namespace fleet {

class AsyncStore;

// The context of a dialect's service. Every member outlives the service.
struct ServiceContext {
  EventLoop& loop;
  Assignment assignment;
  int port = 0;  // RankContext::service_port: held; listen on it with SO_REUSEADDR
  std::shared_ptr<AsyncStore> store;  // the store of this generation; answers on the loop
  // Writes to a rank's service socket, if the dialect has one.
  std::function<void(int local_rank, std::string bytes)> send;
};

struct Dialect {
  std::string name;  // set by FLEET_DIALECT
  int order = 10;    // position in lists and in a rank's environment; equal ones are sorted by name
  // Variables that grow with the world, with their full values. They are in RankContext::lists when
  // the functions below are called.
  Variables (*lists)(const World&) = nullptr;
  // Variables of a rank in collective training.
  Variables (*variables)(const Assignment&, int local_rank, const RankContext&) = nullptr;
  // The subset that the printed table shows; nullptr: all of them.
  Variables (*table)(const Assignment&, int local_rank, const RankContext&) = nullptr;
  // Variables of a process in a job with parameter servers; nullptr if the dialect does not support
  // them.
  Variables (*role)(const Assignment&, int local_rank, const RankContext&) = nullptr;
  // Writes the files that the variables name into the log folder, before ranks start.
  void (*write_files)(const Assignment&, const RankContext&) = nullptr;
  // Serves the ranks while they run, on the agent's loop.
  std::unique_ptr<RankService> (*serve)(const ServiceContext&) = nullptr;
  // The host that the dialect's library may reach through a proxy set in the environment; nullptr
  // if it uses no proxy.
  std::string (*proxied_host)(const Assignment&) = nullptr;
  bool needs_port = false;    // serve() listens on ServiceContext::port
  bool needs_socket = false;  // ranks get a service socket: descriptor kServiceDescriptor
};

// Called by FLEET_DIALECT. Returns true.
bool define_dialect(const std::string& name, void (*define)(Dialect&));
#define FLEET_DIALECT(name) \
  FLEET_REGISTER(dialect_##name, ::fleet::Dialect& def, ::fleet::define_dialect, #name)

const Dialect& dialect_named(const std::string& name);  // throws kUsage for an unknown name
// All dialects, in the order in which their variables are set.
const std::vector<const Dialect*>& all_dialects();
std::string dialect_names();  // "paddle, torch, ..."
// The dialects with these names, in that order. Throws kUsage for an unknown name and suggests the
// nearest.
std::vector<const Dialect*> dialects_named(const std::vector<std::string>& names);

// Whether one of them sets a flag: any_dialect(names, &Dialect::needs_port).
bool any_dialect(const std::vector<std::string>& names, bool Dialect::*capability);

// The names given by --dialect. Throws kUsage for an unknown name, and for a dialect that does not
// support `roles` (parameter servers).
std::vector<std::string> read_dialects(const Settings& settings, bool roles);
// Throws kUsage if fleet-worker would lack variables that it reads.
void check_dialects_of_worker(const std::vector<std::string>& names);

// The services for this node's ranks in one generation; nullptr if no dialect needs one.
std::unique_ptr<RankService> start_dialect_services(const std::vector<std::string>& names,
                                                    const ServiceContext& context);

}  // namespace fleet
