// kill -9 of who takes part in a job through fleetds over several nodes, and what becomes of it:
// whether all ends in time, nothing is left, and the verdict names what was struck. Every trial
// follows from its seed: `chaos_fleetd --help`. Ends with 77 where the machine allows no network
// namespaces.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "base/clock.h"
#include "base/command_line.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "node/process_tree.h"
#include "tests/chaos/fleetd_trial.h"
#include "tests/chaos/network.h"
#include "tests/chaos/rank.h"

namespace fleet::chaos {
namespace {

CommandSyntax syntax() {
  CommandSyntax syntax{
      .program = "chaos_fleetd",
      .about = "kills parts of jobs through fleetds, and sees what becomes of them"};
  syntax.options.text({.key = "fleetrun", .value = "FILE"}, "", "the fleetrun to attack")
      .integer({.key = "seed", .value = "S"}, 1, 0, 1e9, "of all trials")
      .integer({.key = "trials", .value = "N"}, 8, 1, 1e6, "so many")
      .integer({.key = "first", .value = "I"}, 0, 0, 1e6, "replays from this one on")
      .texts({.key = "victims", .value = "LIST", .optional = true},
             "client, fleetd, launcher, rank: in turn (default: all)")
      .integer({.key = "nodes", .value = "N"}, 4, 2, 100, "in addition to the client's")
      .flag({.key = "strict"}, "what comes later than promised is wrong too")
      .flag({.key = "keep"}, "keep the logs");
  return syntax;
}

std::vector<Victim> parse_victims(const std::vector<std::string>& names) {
  if (names.empty()) return all_victims();
  std::vector<Victim> victims;
  for (const std::string& name : names) {
    const auto known = std::find_if(all_victims().begin(), all_victims().end(),
                                    [&](Victim victim) { return name == name_of(victim); });
    if (known == all_victims().end()) {
      throw Error(ErrorCode::kUsage, "no victim is called '" + name + "'");
    }
    victims.push_back(*known);
  }
  return victims;
}

struct Tally {
  int trials = 0, right = 0, left = 0;
  std::vector<double> stopped;
};

void print(const std::string& name, Tally tally) {
  std::sort(tally.stopped.begin(), tally.stopped.end());
  std::printf("%-9s %6d  %5.2f %%  %4d  %.3f / %.3f\n", name.c_str(), tally.trials,
              100.0 * tally.right / tally.trials, tally.left,
              tally.stopped[tally.stopped.size() / 2], tally.stopped.back());
}

int run(const Settings& settings) {
  become_subreaper();
  ::signal(SIGPIPE, SIG_IGN);
  const auto seed = static_cast<uint64_t>(settings.integer("seed"));
  const auto first = static_cast<int>(settings.integer("first"));
  const auto trials = static_cast<int>(settings.integer("trials"));
  const bool keep = settings.boolean("keep");
  const std::vector<Victim> victims = parse_victims(settings.texts("victims"));
  FleetdTrialOptions options;
  options.program = std::filesystem::canonical("/proc/self/exe");
  options.fleetrun = std::filesystem::absolute(settings.text("fleetrun"));
  if (settings.boolean("strict")) options.slack = 1;
  Network network("fd" + std::to_string(::getpid()),
                  static_cast<int>(settings.integer("nodes")) + 1);
  char folder[] = "/tmp/fleet-chaos-XXXXXX";
  if (!::mkdtemp(folder)) throw_errno("cannot make a folder", folder);
  std::map<Victim, Tally> tallies;
  int wrong = 0;
  const double begun = monotonic_seconds();
  for (int i = first; i < first + trials; ++i) {
    // A stream of its own for each trial, whichever runs before it.
    const uint64_t own = std::mt19937_64(seed * 1'000'003 + static_cast<uint64_t>(i))();
    const Victim victim = victims[static_cast<size_t>(i) % victims.size()];
    options.folder = std::string(folder) + "/" + std::to_string(i);
    std::filesystem::create_directories(options.folder);
    const FleetdTrialResult result = run_fleetd_trial(victim, own, network, options);
    for (Tally* tally : {&tallies[victim]}) {
      ++tally->trials, tally->right += result.verdict_right, tally->left += result.left;
      tally->stopped.push_back(result.stopped);
    }
    if (!result.wrong.empty()) {
      ++wrong;
      std::printf("trial %d (--seed %llu --first %d --trials 1), %s: %s\n  its logs: %s\n", i,
                  static_cast<unsigned long long>(seed), i, result.fault.c_str(),
                  result.wrong.c_str(), options.folder.c_str());
      std::fflush(stdout);
    } else if (!keep) {
      std::filesystem::remove_all(options.folder);
    }
  }
  std::printf("%-9s %6s  %7s  %4s  %s\n", "victim", "trials", "right", "left", "ended s med/max");
  for (const auto& [victim, tally] : tallies) print(name_of(victim), tally);
  std::printf("seed %llu, %d trials in %.0f s, %d with something wrong\n",
              static_cast<unsigned long long>(seed), trials, monotonic_seconds() - begun, wrong);
  if (wrong == 0 && !keep) std::filesystem::remove_all(folder);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fleet::chaos

int main(int argc, char** argv) {
  using namespace fleet;
  if (argc == 2 && std::string(argv[1]) == "rank") return chaos::run_rank();
  try {
    const auto line = read_command_line(chaos::syntax(), {argv + 1, argv + argc});
    if (!line) return std::fputs(command_help(chaos::syntax()).c_str(), stdout), 0;
    return chaos::run(line->settings);
  } catch (const Error& error) {
    const bool cannot = error.code() == ErrorCode::kUnsupported;
    std::fprintf(stderr, "%s%s\n", cannot ? "SKIP: " : "chaos_fleetd: ", error.what());
    return cannot ? 77 : 2;
  }
}
