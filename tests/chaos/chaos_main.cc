// Strikes jobs that run over several nodes, and sees what becomes of them: whether all ends in
// time, nothing is left, and the verdict names what was struck. Every trial follows from its seed:
//   chaos --fleetrun FILE [--seed S] [--trials N] [--first I] [--faults rank,host,...] [--nodes 4]
//         [--ranks 2] [--heartbeat 15] [--restarts] [--strict] [--keep] [-- further arguments of
//         fleetrun]
// `--heartbeat`: seconds after which a silent node is lost (--heartbeat_timeout).
// `--restarts`: the job must continue with the remaining nodes, or with all that come back.
// `--strict`: what comes later than promised is wrong too; else only what is ten times later.
// replays trial I of a run with `--seed S --first I --trials 1`. Ends with 77 where the machine
// allows no network namespaces.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <random>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "node/process_tree.h"
#include "tests/chaos/network.h"
#include "tests/chaos/rank.h"
#include "tests/chaos/trial.h"

namespace fleet::chaos {
namespace {

// One of so many trials has nodes with addresses of IPv6 only.
constexpr uint64_t kIpv6Of = 4;

struct Arguments {
  TrialOptions trial;
  uint64_t seed = 1;
  int trials = 20, first = 0, nodes = 4;
  std::vector<Fault> faults = all_faults();
  bool keep = false;
};

[[noreturn]] void usage(const std::string& what) { throw Error(ErrorCode::kUsage, what); }

std::vector<Fault> parse_faults(const std::string& list) {
  std::vector<Fault> faults;
  for (const std::string& name : split(list, ',')) {
    const auto known = std::find_if(all_faults().begin(), all_faults().end(),
                                    [&](Fault fault) { return name == name_of(fault); });
    if (known == all_faults().end()) usage("no fault is called '" + name + "'");
    faults.push_back(*known);
  }
  return faults;
}

int integer(const std::string& text) {
  long long value = 0;
  if (!parse_int(text, &value)) usage("'" + text + "' is not a number");
  return static_cast<int>(value);
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  arguments.trial.program = std::filesystem::canonical("/proc/self/exe");
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--") {
      arguments.trial.extra.assign(argv + i + 1, argv + argc);
      break;
    }
    if (name == "--strict") {
      arguments.trial.slack = 1;
      continue;
    }
    if (name == "--restarts") {
      arguments.trial.restarts = true;
      continue;
    }
    if (name == "--keep") {
      arguments.keep = true;
      continue;
    }
    if (++i == argc) usage(name + " needs a value");
    const std::string value = argv[i];
    if (name == "--fleetrun")
      arguments.trial.fleetrun = std::filesystem::absolute(value);
    else if (name == "--seed")
      arguments.seed = static_cast<uint64_t>(integer(value));
    else if (name == "--trials")
      arguments.trials = integer(value);
    else if (name == "--first")
      arguments.first = integer(value);
    else if (name == "--nodes")
      arguments.nodes = integer(value);
    else if (name == "--ranks")
      arguments.trial.ranks_per_node = integer(value);
    else if (name == "--heartbeat")
      arguments.trial.heartbeat = integer(value);
    else if (name == "--faults")
      arguments.faults = parse_faults(value);
    else
      usage("no option is called '" + name + "'");
  }
  if (arguments.trial.fleetrun.empty()) usage("--fleetrun FILE is missing");
  return arguments;
}

struct Tally {
  int trials = 0, right = 0, left = 0, wrong = 0;
  std::vector<double> seen, stopped;
};

std::string times(std::vector<double> values) {
  if (values.empty()) return "-";
  std::sort(values.begin(), values.end());
  char text[64];
  std::snprintf(text, sizeof text, "%.3f / %.3f", values[values.size() / 2], values.back());
  return text;
}

void print(const std::string& name, const Tally& tally) {
  std::printf("%-9s %6d  %5.2f %%  %4d  %-15s  %-15s\n", name.c_str(), tally.trials,
              100.0 * tally.right / std::max(1, tally.trials), tally.left,
              times(tally.seen).c_str(), times(tally.stopped).c_str());
}

// A stream of its own for each trial, whichever runs before it.
uint64_t seed_of(uint64_t seed, int trial) {
  return std::mt19937_64(seed * 1'000'003 + static_cast<uint64_t>(trial))();
}

// Nothing, which is said, where this machine has no IPv6.
std::unique_ptr<Network> ipv6_network(const std::string& name, int nodes) {
  try {
    return std::make_unique<Network>(name, nodes, Network::Family::kIpv6);
  } catch (const Error& error) {
    std::printf("SKIP: no trial has nodes with IPv6 only: %s\n", error.what());
    return nullptr;
  }
}

// Without those that this machine cannot inject, which are said.
std::vector<Fault> possible(std::vector<Fault> faults, Network& network) {
  if (network.can_lose()) return faults;
  const auto of_nft = [](Fault fault) {
    return fault == Fault::kLink || fault == Fault::kLoss || fault == Fault::kOutage;
  };
  if (std::any_of(faults.begin(), faults.end(), of_nft)) {
    std::printf("SKIP: the faults link, loss and outage need nft (the package nftables)\n");
  }
  std::erase_if(faults, of_nft);
  if (faults.empty()) throw Error(ErrorCode::kUnsupported, "no fault is possible here");
  return faults;
}

int run(const Arguments& arguments) {
  become_subreaper();
  ::signal(SIGPIPE, SIG_IGN);
  const std::string name = "watch" + std::to_string(::getpid());
  Network network(name, arguments.nodes);
  const std::unique_ptr<Network> ipv6_only = ipv6_network(name + "v6", arguments.nodes);
  const std::vector<Fault> faults = possible(arguments.faults, network);
  char folder[] = "/tmp/fleet-chaos-XXXXXX";
  if (!::mkdtemp(folder)) throw_errno("cannot make a folder", folder);
  std::map<Fault, Tally> tallies;
  int wrong = 0;
  const double begun = monotonic_seconds();
  for (int i = arguments.first; i < arguments.first + arguments.trials; ++i) {
    const uint64_t seed = seed_of(arguments.seed, i);
    const Fault fault = faults[static_cast<size_t>(i) % faults.size()];
    TrialOptions options = arguments.trial;
    options.folder = std::string(folder) + "/" + std::to_string(i);
    std::filesystem::create_directories(options.folder);
    Network& of_trial = ipv6_only && seed % kIpv6Of == 0 ? *ipv6_only : network;
    const TrialResult result = run_trial(fault, seed, of_trial, options);
    Tally& tally = tallies[fault];
    ++tally.trials;
    tally.right += result.started && result.verdict_right;
    tally.left += result.left;
    tally.seen.push_back(result.seen);
    tally.stopped.push_back(result.stopped);
    if (!result.wrong.empty()) {
      ++wrong, ++tally.wrong;
      std::printf("trial %d (--seed %llu --first %d --trials 1), %s: %s\n", i,
                  static_cast<unsigned long long>(arguments.seed), i, result.fault.c_str(),
                  result.wrong.c_str());
      std::printf("  its logs: %s\n", options.folder.c_str());
      std::fflush(stdout);
    } else if (!arguments.keep) {
      std::filesystem::remove_all(options.folder);
    }
  }
  Tally all;
  std::printf("%-9s %6s  %7s  %4s  %-15s  %-15s\n", "fault", "trials", "right", "left",
              "seen s med/max", "ended s med/max");
  for (const auto& [fault, tally] : tallies) {
    print(name_of(fault), tally);
    all.trials += tally.trials, all.right += tally.right, all.left += tally.left;
    all.seen.insert(all.seen.end(), tally.seen.begin(), tally.seen.end());
    all.stopped.insert(all.stopped.end(), tally.stopped.begin(), tally.stopped.end());
  }
  print("all", all);
  std::printf("seed %llu, %d nodes of %d ranks, %d trials in %.0f s, %d with something wrong\n",
              static_cast<unsigned long long>(arguments.seed), arguments.nodes,
              arguments.trial.ranks_per_node, arguments.trials, monotonic_seconds() - begun, wrong);
  if (wrong == 0 && !arguments.keep) std::filesystem::remove_all(folder);
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace fleet::chaos

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "rank") return fleet::chaos::run_rank();
  try {
    return fleet::chaos::run(fleet::chaos::parse(argc, argv));
  } catch (const fleet::Error& error) {
    const bool cannot = error.code() == fleet::ErrorCode::kUnsupported;
    std::fprintf(stderr, "%s%s\n", cannot ? "SKIP: " : "chaos: ", error.what());
    return cannot ? 77 : 2;
  }
}
