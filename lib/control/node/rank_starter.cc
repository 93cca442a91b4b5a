#include "node/rank_starter.h"

#include <unistd.h>

#include <string>
#include <utility>

#include "base/error.h"
#include "store/env.h"
#include "transport/validate.h"

namespace fleet {
namespace {

// Sets the value of a variable that a rank may have already.
void replace_value(const std::string& name, std::string value, wire::RankCommand* rank) {
  NamedValues kept;
  for (wire::NamedValue& one : *rank->mutable_environment()) {
    if (one.name() != name) *kept.Add() = std::move(one);
  }
  add_value(name, std::move(value), &kept);
  *rank->mutable_environment() = std::move(kept);
}

}  // namespace

wire::RankStarted RankStarter::start(GuardedRank* rank, UniqueFd* service) {
  const wire::RankCommand& command = rank->command;
  // A file of an earlier start.
  if (!command.error_file().empty()) ::unlink(command.error_file().c_str());
  SpawnResult spawned = start_process(rank);
  rank->pid = spawned.pid;
  rank->ended = spawned.pid < 0;
  wire::RankStarted started;
  started.set_local_rank(command.local_rank());
  started.set_pid(spawned.pid);
  started.set_error(spawned.error);
  if (rank->ended) return started;
  *service = std::move(spawned.service);
  rank->log = rank->log ? logs_.open_again(rank->log, command, std::move(spawned.output))
                        : logs_.open(command, std::move(spawned.output));
  return started;
}

SpawnResult RankStarter::start_process(GuardedRank* rank) {
  try {
    rank->progress = std::make_unique<ProgressReader>();
    replace_value(kEnvProgressFile, rank->progress->path(), &rank->command);
    rank->collectives = std::make_unique<CollectiveLogReader>();
    replace_value(kEnvCollectivesFile, rank->collectives->path(), &rank->command);
    return spawn_rank(rank->command, mask_, &limit_, &descriptors_);
  } catch (const Error& error) {  // descriptors may have run out
    SpawnResult failed;
    failed.error = error.what();
    return failed;
  }
}

GuardedRank successor_of(GuardedRank failed, int ordinal) {
  GuardedRank next{.command = std::move(failed.command), .log = failed.log};
  replace_value(kEnvReplacement, std::to_string(ordinal), &next.command);
  replace_value(kEnvReplacedStep, std::to_string(failed.steps), &next.command);
  return next;
}

}  // namespace fleet
