#include "explain_command.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "api/world.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file_size_signal.h"
#include "base/log.h"
#include "base/process_memory.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "base/thread.h"
#include "cost/rates.h"
#include "explain_servers.h"
#include "train/choose_strategy.h"
#include "train/device_settings.h"
#include "train/explain.h"
#include "train/job_facts.h"
#include "train/measure_rates.h"

namespace fleet {
namespace {

constexpr char kThreads[] = "OMP_NUM_THREADS";

int ranks_of(const WorkerArguments& arguments) {
  return static_cast<int>(arguments.ranks > 0 ? arguments.ranks
                                              : env_int_or("PADDLE_TRAINERS_NUM", 1));
}
int nodes_of(const WorkerArguments& arguments) {
  return static_cast<int>(arguments.nodes > 0 ? arguments.nodes : env_int_or("PADDLE_NNODES", 1));
}

void check_ranks(int rank, int ranks, int nodes) {
  if (rank >= ranks) {
    throw Error(ErrorCode::kUsage,
                "a job of " + std::to_string(ranks) + " ranks has no rank " + std::to_string(rank),
                "--rank", "give --ranks too, and count from 0");
  }
  if (nodes <= ranks && ranks % nodes == 0) return;
  throw Error(
      ErrorCode::kUsage,
      std::to_string(ranks) + " ranks cannot be divided among " + std::to_string(nodes) + " nodes",
      "--nodes", "give a number of ranks that is a multiple of the number of nodes");
}

// OpenMP reads its number of threads when the program starts.
void restart_with_threads(int threads, char** argv) {
  if (openmp_threads()) return;
  ::setenv(kThreads, std::to_string(threads).c_str(), 1);
  restore_file_size_signal();
  ::execv("/proc/self/exe", argv);
  ignore_file_size_signal();
  spdlog::warn("cannot start again with {}={}: the times are of one thread per core", kThreads,
               threads);
}

// Bytes a second from "10G" (bits a second, in powers of 1000).
double link_bytes(const std::string& text) {
  constexpr std::string_view kUnits = "KMGT";
  double bits = 0;
  const size_t unit = text.empty() ? std::string_view::npos : kUnits.find(text.back());
  const bool has_unit = unit != std::string_view::npos;
  if (!parse_double(text.substr(0, text.size() - (has_unit ? 1 : 0)), &bits) || bits <= 0) {
    throw Error(ErrorCode::kUsage, "'" + text + "' is not a rate", "--link_rate",
                "give bits a second, such as 10G or 200M");
  }
  if (has_unit) bits *= std::pow(1000.0, static_cast<double>(unit + 1));
  return bits / 8;
}

}  // namespace

void explain_job(const WorkerArguments& arguments, const ConfigTree& given, char** argv) {
  ConfigTree tree = given;
  ExplainOptions options{.rank = std::max(arguments.rank, 0),
                         .ranks = ranks_of(arguments),
                         .nodes = nodes_of(arguments)};
  const int servers =
      arguments.servers >= 0 ? arguments.servers : static_cast<int>(servers_from_env().size());
  if (servers > 0) return explain_job_with_servers(arguments, tree, options.ranks, servers);
  check_ranks(options.rank, options.ranks, options.nodes);
  options.process_bytes = static_cast<size_t>(process_memory().resident);
  const int ranks_here = options.ranks / options.nodes;
  options.threads = threads_of_rank(ranks_here);
  if (!arguments.card.empty()) {
    rates_of_card(arguments.card);  // refuses an unknown name first
    tree.set("train.device", accelerators().front(), "--for");
  }
  const Job job = make_job(tree);
  // Measurements would take a minute before the start's refusal.
  if (!job.tables.empty() && !job.train.boolean("evaluate_only")) {
    throw Error(ErrorCode::kUsage, "tables need parameter servers, and none are given", "tables",
                "give their number with --servers, or remove the section");
  }
  const DeviceChoice choice = choose_device_to_print(job);
  const bool absent = !choice.missing.empty();
  options.backend = absent ? choice.missing : choice.device->backend();
  options.device = absent ? nullptr : choice.device.get();
  if (absent && !has_backend(options.backend)) {
    throw Error(ErrorCode::kUnsupported, "cannot explain what a GPU would run: " + choice.reason,
                arguments.card.empty() ? "train.device" : "--for",
                "use a build with the CUDA backend, or --device cpu");
  }
  if (!arguments.link_rate.empty()) options.topology.link_bytes = link_bytes(arguments.link_rate);
  const bool accelerator = is_accelerator(options.backend);
  std::optional<InputCost> input;
  if (!arguments.card.empty()) {
    options.rates = rates_of_card(arguments.card);
    options.topology.local_bytes = card_link_bytes(arguments.card);
    options.available_bytes = static_cast<size_t>(options.rates->memory_bytes);
  } else if (absent) {
    throw Error(ErrorCode::kUsage, "there is no GPU here whose rates could be measured",
                "train.device", "name a card with --for: " + join(card_names(), ", "));
  } else {
    restart_with_threads(options.threads, argv);
    spdlog::info("measuring what it takes to read some batches of data.source {}",
                 job.data.text("source"));
    input = measure_input(job, *choice.device,
                          {.rank = options.rank,
                           .world = options.ranks,
                           .nodes = options.nodes,
                           .backend = options.backend});
    if (input) {
      options.input_bytes = input->bytes;
      options.input_seconds = input->seconds;
      options.columns = input->columns;
    }
    options.available_bytes = accelerator
                                  ? choice.device->memory().available
                                  : available_host_memory() / static_cast<size_t>(ranks_here);
    const MeasureOptions measure{.ranks_here = accelerator ? 1 : ranks_here,
                                 .threads = options.threads,
                                 .low = job.strategy.boolean("amp"),
                                 .again = arguments.measure == "again",
                                 .device = options.backend};
    options.rates =
        arguments.measure == "never" ? read_rates(rates_file_of(measure)) : measured_rates(measure);
  }
  std::vector<StrategyChoice> choices;
  if (job.strategy.boolean("auto")) {
    const auto samples = [&] { return input ? std::optional(input->samples) : std::nullopt; };
    choices = choose_strategy(tree, options, {.samples = samples});
    tree = with_choices(tree, choices);
  }
  Explanation explained = explain(tree, options);
  explained.choices = std::move(choices);
  explain_what_if(tree, options, &explained);
  if (arguments.format == "json") {
    std::puts(explanation_json(explained).c_str());
  } else {
    std::fputs(escape_controls(explanation_text(explained)).c_str(), stdout);
  }
}

}  // namespace fleet
