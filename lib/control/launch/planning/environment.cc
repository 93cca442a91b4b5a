#include "launch/planning/environment.h"

#include <algorithm>
#include <filesystem>

#include "base/env.h"
#include "base/file_name.h"
#include "base/text.h"
#include "launch/planning/addresses.h"
#include "launch/planning/dialects/dialect.h"
#include "node/reported_steps.h"
#include "observe/progress.h"
#include "store/env.h"
#include "transport/security.h"

namespace fleet {
namespace {

constexpr std::string_view kFileEnding = "_FILE";
constexpr char kServers[] = "PADDLE_PSERVERS_IP_PORT_LIST";

// The variables of a rank from all dialects.
Variables dialect_variables(const Assignment& assignment, int local_rank,
                            const RankContext& context) {
  Variables all;
  for (const Dialect* dialect : dialects_named(context.dialects)) {
    const auto set = assignment.world->servers() > 0 ? dialect->role : dialect->variables;
    if (!set) continue;
    for (auto& variable : set(assignment, local_rank, context)) {
      const auto same = [&](const auto& other) { return other.first == variable.first; };
      // Dialects share some names with the same meaning.
      if (std::none_of(all.begin(), all.end(), same)) all.push_back(std::move(variable));
    }
  }
  return all;
}

// The path is absolute because the program may change its folder. It contains the job and the
// generation, so that a rank never reads another list.
std::string path_of(const std::string& name, const Assignment& assignment,
                    const RankContext& context) {
  return std::filesystem::absolute(context.log_dir) /
         (name + "." + file_name_component(context.job_id) + "." +
          std::to_string(assignment.generation()));
}

std::vector<std::vector<int>> nodes_by_local_rank(const World& world) {
  std::vector<std::vector<int>> nodes;
  for (const wire::Node& node : world.nodes()) {
    const auto ranks = static_cast<size_t>(node.local_world_size());
    if (nodes.size() < ranks) nodes.resize(ranks);
    for (size_t local_rank = 0; local_rank < ranks; ++local_rank) {
      nodes[local_rank].push_back(node.node_rank());
    }
  }
  return nodes;
}

JobLists lists_of(const Assignment& assignment, const RankContext& context) {
  JobLists lists;
  lists.roles = role_ranks(*assignment.world);
  lists.nodes_with = nodes_by_local_rank(*assignment.world);
  for (const Dialect* dialect : dialects_named(context.dialects)) {
    if (!dialect->lists) continue;
    for (auto& [name, value] : dialect->lists(*assignment.world)) {
      if (value.size() <= kMaxValueBytes) {
        lists.variables[name] = {name, std::move(value)};
        continue;
      }
      const std::string path = path_of(name, assignment, context);
      lists.variables[name] = {name + std::string(kFileEnding), path};
      lists.files.push_back({name, path, std::move(value)});
    }
  }
  return lists;
}

}  // namespace

std::vector<RoleRanks> role_ranks(const World& world) {
  std::map<std::string_view, int> sizes;
  std::vector<RoleRanks> all;
  for (const wire::Node& node : world.nodes()) {
    int& size = sizes[node.role()];
    all.push_back({size, 0});
    size += node.local_world_size();
  }
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].size = sizes[world.nodes(static_cast<int>(i)).role()];
  }
  return all;
}

std::vector<std::string> endpoints_of(const World& world, bool servers) {
  std::vector<std::string> all(static_cast<size_t>(servers ? world.servers() : world.world_size()));
  for (const wire::Node& node : world.nodes()) {
    for (int local = 0; local < node.local_world_size(); ++local) {
      const auto rank = static_cast<size_t>(rank_of(node, local));
      if (is_server(node, local) != servers || rank >= all.size()) continue;
      all[rank] = endpoint(node.address(), node.ports(local));
    }
  }
  return all;
}

std::string first_endpoint(const World& world) {
  for (const wire::Node& node : world.nodes()) {
    for (int local = node.servers(); local < node.local_world_size(); ++local) {
      if (rank_of(node, local) != 0) continue;
      return endpoint(node.address(), node.ports(local));
    }
  }
  return {};
}

std::string join_numbers(std::span<const int> numbers, const char* separator) {
  std::vector<std::string> texts;
  for (const int number : numbers) texts.push_back(std::to_string(number));
  return join(texts, separator);
}

RankContext with_lists(const Assignment& assignment, RankContext context) {
  if (!context.lists) {
    context.lists = std::make_shared<const JobLists>(lists_of(assignment, context));
  }
  return context;
}

std::vector<LongValue> long_values(const Assignment& assignment, const RankContext& context) {
  return with_lists(assignment, context).lists->files;
}

Variables table_environment(const Assignment& assignment, int local_rank,
                            const RankContext& context, bool others) {
  const RankContext whole = with_lists(assignment, context);
  const Dialect& first = *dialects_named(context.dialects).front();
  const auto show = assignment.world->servers() > 0 ? first.role
                    : first.table                   ? first.table
                                                    : first.variables;
  Variables shown = show(assignment, local_rank, whole);
  if (!others) return shown;
  RankContext further = whole;
  std::erase(further.dialects, first.name);
  if (further.dialects.empty()) return shown;
  for (auto& variable : dialect_variables(assignment, local_rank, further)) {
    shown.push_back(std::move(variable));
  }
  return shown;
}

Variables rank_environment(const Assignment& assignment, int local_rank,
                           const RankContext& context) {
  Variables all = dialect_variables(assignment, local_rank, with_lists(assignment, context));
  all.emplace_back(kEnvStoreAddress, assignment.store_address);
  // Set it to empty in an open job started inside another job's rank, so that it does not inherit
  // the outer job's credentials.
  if (!context.credentials.empty() || get_env(kEnvCredentials)) {
    all.emplace_back(kEnvCredentials, context.credentials);
  }
  all.emplace_back(kEnvJobId, context.job_id);
  all.emplace_back(kEnvGeneration, std::to_string(assignment.generation()));
  all.emplace_back(kEnvRun, assignment.world->run());
  all.emplace_back(kEnvLogLevel, context.log_level);
  if (!context.steps_file.empty() && !is_server(assignment.node(), local_rank)) {
    all.emplace_back(kEnvStepsFile, context.steps_file);
  }
  if (context.terminal_width > 0) {
    all.emplace_back(kEnvTerminalWidth, std::to_string(context.terminal_width));
  }
  if (context.threads > 0) all.emplace_back("OMP_NUM_THREADS", std::to_string(context.threads));
  return all;
}

std::vector<std::string> removed_environment(const Assignment& assignment, int local_rank,
                                             const Variables& set) {
  std::vector<std::string> names = {kEnvJobSecret, "FLEETD_SECRET"};
  if (is_server(assignment.node(), local_rank)) {
    names.emplace_back("PADDLE_TRAINER_ID");
    names.emplace_back(kEnvStepsFile);
  }
  // A rank of a job with parameter servers may have started the launcher.
  for (const std::string& name : {std::string(kServers), kServers + std::string(kFileEnding)}) {
    if (assignment.world->servers() == 0 && get_env(name)) names.push_back(name);
  }
  // The launcher may itself run inside a rank.
  for (const auto& [name, value] : set) {
    const std::string in_file = name + std::string(kFileEnding);
    if (name.ends_with(kFileEnding)) {
      names.push_back(name.substr(0, name.size() - kFileEnding.size()));
    } else if (get_env(in_file)) {
      names.push_back(in_file);
    }
  }
  return names;
}

}  // namespace fleet
