// Dialects of environment: how the programs of each ecosystem are told who and where they are. One
// file a dialect, and its line in dialects.cc.
#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.h"
#include "launch/rank_context.h"
#include "node/rank_service.h"

namespace fleet {

class AsyncStore;

// What a dialect's service works with. Everything in it outlives the service.
struct ServicePlace {
  boost::asio::io_context& loop;
  Assignment assignment;
  int port = 0;  // RankContext::service_port: held, to be listened on with SO_REUSEADDR
  std::shared_ptr<AsyncStore> store;  // the job's, of this epoch; answers in the loop
  // Writes to a rank's service socket, where the dialect has one.
  std::function<void(int local_rank, std::string bytes)> tell;
};

struct Dialect {
  std::string name;
  // Variables that grow with the world, with their whole values: they are in RankContext::lists
  // when the functions below are called.
  Variables (*lists)(const World&) = nullptr;
  // What is set for a rank of collective training.
  Variables (*variables)(const Assignment&, int local_rank, const RankContext&) = nullptr;
  // The part of it that the printed table shows; nullptr: all.
  Variables (*table)(const Assignment&, int local_rank, const RankContext&) = nullptr;
  // What is set for a process of a job with parameter servers; nullptr: there are none in it.
  Variables (*role)(const Assignment&, int local_rank, const RankContext&) = nullptr;
  // Writes the files that the variables name, into the log folder; before ranks start.
  void (*write_files)(const Assignment&, const RankContext&) = nullptr;
  // Answers the ranks while they run, on the agent's loop.
  std::unique_ptr<RankService> (*serve)(const ServicePlace&) = nullptr;
  // The host that its library reaches through a proxy of the environment; nullptr: it uses none.
  std::string (*proxied_host)(const Assignment&) = nullptr;
  bool wants_port = false;    // serve() listens on ServicePlace::port
  bool wants_socket = false;  // ranks get a service socket: descriptor kServiceDescriptor
};

// All there are, in the order in which their variables are set.
const std::vector<const Dialect*>& all_dialects();
std::string dialect_names();  // "paddle, torch, ..."
// Those of these names, in that order. kUsage naming the nearest for one that is unknown.
std::vector<const Dialect*> dialects_named(const std::vector<std::string>& names);

// Whether one of them wants this: any_dialect(names, &Dialect::wants_port).
bool any_dialect(const std::vector<std::string>& names, bool Dialect::*wish);

// The names that --dialect gives. kUsage for an unknown one, and for what does not go together with
// `roles` (parameter servers) or `trains` (fleet-worker).
std::vector<std::string> read_dialects(const Settings& settings, bool roles, bool trains);

// What answers this node's ranks in an epoch; nullptr where none of the dialects needs it.
std::unique_ptr<RankService> serve_dialects(const std::vector<std::string>& names,
                                            const ServicePlace& place);

// Of the nodes that have a rank of this local number: how many there are, and which one this is.
struct CrossRank {
  int rank = 0, size = 0;
};
CrossRank cross_rank(const Assignment& assignment, int local_rank);

extern const Dialect kPaddleDialect, kTorchDialect, kJaxDialect, kHorovodDialect, kMpichDialect,
    kOpenMpiDialect, kMlxDialect;

}  // namespace fleet
