// fleet-worker: one rank of a training job.
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <exception>
#include <set>

#include "arguments.h"
#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "comm/factory.h"
#include "exec/backend.h"
#include "rendezvous/env.h"
#include "rendezvous/store_client.h"
#include "strategy/reference.h"
#include "strategy/save.h"
#include "train/device_settings.h"
#include "train/trainer.h"

namespace fleet {
namespace {

std::atomic<int> stop_signal{0};

void ask_to_stop(int signal) { stop_signal = signal; }

// Which rank this is, from what the launcher set; alone a job of one rank.
struct World {
  int rank = 0, size = 1;
  std::vector<std::string> nodes;  // by rank
  std::shared_ptr<Store> store;
  int node_count() const {
    return std::max<int>(1, static_cast<int>(std::set(nodes.begin(), nodes.end()).size()));
  }
};

World world_from_env() {
  World world;
  world.rank = static_cast<int>(env_int_or("PADDLE_TRAINER_ID", 0));
  world.size = static_cast<int>(env_int_or("PADDLE_TRAINERS_NUM", 1));
  for (const std::string& endpoint :
       split(get_env_or_file("PADDLE_TRAINER_ENDPOINTS").value_or(""), ',')) {
    world.nodes.push_back(endpoint.substr(0, endpoint.rfind(':')));
  }
  world.store = connect_store_from_env();
  if (world.size > 1 && !world.store) {
    throw Error(ErrorCode::kUsage, "no rendezvous for a job of several ranks",
                "environment FLEET_STORE_ADDRESS", "start it with fleetrun");
  }
  return world;
}

// What the ranks of a job reach each other by: the device's memory, and the host's.
struct Connection {
  std::unique_ptr<Communicator> compute, control;  // null in a job of one rank
};

Connection connect(const Job& job, const World& world, Device& device) {
  Connection connection;
  if (world.size == 1) return connection;
  CommOptions options{.rank = world.rank,
                      .size = world.size,
                      .nodes = world.nodes,
                      .store = world.store,
                      .names = {}};
  apply(job.comm, &options);
  if (device.backend() != "cpu") {
    CommOptions host = options;
    host.group = "control";
    host.backend = "auto";
    connection.control = make_communicator(host);
    options.device = &device;
  }
  connection.compute = make_communicator(options);
  if (world.rank == 0) {
    spdlog::info("{} ranks communicate through {}", world.size, connection.compute->name());
  }
  return connection;
}

// Where this rank computes. One line says why it is the CPU where that was not asked for.
DeviceChoice choose(const Job& job, bool speaks) {
  const DeviceWish wish = device_wish(job.train.text("device"), get_env("FLAGS_selected_gpus"),
                                      get_env("PADDLE_TRAINER_ID").has_value());
  DeviceChoice choice = choose_device(wish.name, wish.index, device_options(job));
  if (!speaks) return choice;
  if (!wish.note.empty()) spdlog::info("training runs on the CPU: {}", wish.note);
  if (!choice.note.empty()) {
    spdlog::log(wish.name == "cuda" ? spdlog::level::warn : spdlog::level::info, "{}", choice.note);
  }
  const auto vain = without_effect(job, choice.device->backend());
  if (!vain.empty()) spdlog::warn("without effect on the CPU: {}", join(vain, ", "));
  return choice;
}

// The Plan of train.device, also where that is a GPU that is not here: kernels then answer without
// asking it.
void print_plan(BuiltProgram built, const std::string& backend, Device* device) {
  const PlanOptions options{.backend = backend, .initial_layouts = {}, .device = device};
  std::fputs(make_plan(std::move(built.program), built.keep, options).text().c_str(), stdout);
}

// The printing options: true where one of them was given.
bool print(const WorkerArguments& arguments, const ConfigTree& tree) {
  if (arguments.print_keys) {
    std::fputs(job_schema(tree).help().c_str(), stdout);
    return true;
  }
  const bool program = !arguments.print_program.empty();
  if (!arguments.print_config && !program && !arguments.print_plan) return false;
  const Job job = make_job(tree);
  ProgramOptions options{.image = {},
                         .rank = static_cast<int>(env_int_or("PADDLE_TRAINER_ID", 0)),
                         .world = static_cast<int>(env_int_or("PADDLE_TRAINERS_NUM", 1)),
                         .nodes = static_cast<int>(env_int_or("PADDLE_NNODES", 1))};
  if (arguments.print_config) {
    std::fputs(job.settings.print().c_str(), stdout);
    if (!program && !arguments.print_plan) check_job(job, options);
  }
  if (!program && !arguments.print_plan) return true;
  options.image = image_shape(job.model_name, job.data.integer("image.channels"),
                              job.data.integer("image.height"), job.data.integer("image.width"));
  const DeviceChoice choice = choose(job, false);
  const bool absent = job.train.text("device") == "cuda" && choice.device->backend() != "cuda";
  options.backend = absent ? "cuda" : choice.device->backend();
  if (absent && !has_backend(options.backend)) {
    throw Error(ErrorCode::kUnsupported,
                "what a GPU would run cannot be printed here: " + choice.reason, "train.device",
                "--device cpu prints what the CPU runs; docs/gpu.md tells what a GPU needs");
  }
  if (absent) {
    spdlog::info("for a GPU, without one ({}): what its libraries would choose is not in it",
                 choice.reason);
  }
  BuiltProgram built = build_program(job, options);
  if (program) {
    const bool dot = arguments.print_program == "dot";
    std::fputs((dot ? print_dot(built.program) : print_text(built.program)).c_str(), stdout);
  }
  if (arguments.print_plan) {
    print_plan(std::move(built), options.backend, absent ? nullptr : choice.device.get());
  }
  return true;
}

void save(const WorkerArguments& arguments, const ConfigTree& tree) {
  const std::vector<std::string> left_out = save_strategy_file(
      strategy_from(make_job(tree).strategy), arguments.paddle, arguments.save_strategy);
  if (!left_out.empty()) {
    spdlog::warn("not in {}, because Paddle {} does not have it: {}", arguments.save_strategy,
                 arguments.paddle, join(left_out, ", "));
  }
}

int run(int argc, char** argv) {
  WorkerArguments arguments;
  if (!parse_arguments(argc, argv, &arguments)) return 0;
  if (!arguments.print_flags.empty()) {
    const bool markdown = arguments.print_flags == "markdown";
    std::fputs((markdown ? reference_markdown() : reference_text()).c_str(), stdout);
    return 0;
  }
  set_up_logging(arguments.log_level, "rank " + env_or("PADDLE_TRAINER_ID", "0"));
  ConfigTree tree = ConfigTree::from_file(arguments.job_file);
  apply_flags(tree);
  apply_overrides(tree, arguments.overrides);
  if (!arguments.device.empty()) tree.set("train.device", arguments.device, "--device");
  if (print(arguments, tree)) return 0;
  if (!arguments.save_strategy.empty()) {
    save(arguments, tree);
    return 0;
  }

  const Job job = make_job(tree);
  // The launcher looks at the stacks of a job that hangs, where the kernel asks for leave (Yama).
  if (get_env(kEnvStoreAddress)) ::prctl(PR_SET_PTRACER, ::getppid(), 0, 0, 0);
  std::signal(SIGTERM, ask_to_stop);
  std::signal(SIGINT, ask_to_stop);
  std::signal(SIGHUP, ask_to_stop);
  std::signal(SIGQUIT, ask_to_stop);
  const World world = world_from_env();
  if (world.rank == 0) {
    for (const std::string& line : environment_without_effect()) spdlog::info("{}", line);
  }
  // A rank that was given a GPU and does not compute on it says so itself: others may do.
  const DeviceChoice choice = choose(job, world.rank == 0 || get_env("FLAGS_selected_gpus"));
  for (const std::string& line : choice.device->description()) spdlog::info("{}", line);
  const Connection connection = connect(job, world, *choice.device);
  Trainer trainer(
      job, *choice.device,
      {.rank = world.rank,
       .world = world.size,
       .nodes = world.node_count(),
       .communicator = connection.compute.get(),
       .control = connection.control.get(),
       .store = world.store,
       .stop = &stop_signal,
       .terminal_width = static_cast<int>(env_int_or(kEnvTerminalWidth, terminal_width(1))),
       .run = env_or(kEnvRun, ""),
       .restarted = env_int_or(kEnvEpoch, 1) > 1});
  if (arguments.profile) trainer.session().executor().set_profiling(true);
  trainer.run();
  if (arguments.profile && world.rank == 0) {
    std::fputs(trainer.session().executor().profile().c_str(), stdout);
  }
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  try {
    return fleet::run(argc, argv);
  } catch (const fleet::Error& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "fleet-worker: %s\n", error.what());
    return fleet::exit_code_for(error.code());
  } catch (const std::exception& error) {
    std::fflush(stdout);
    std::fprintf(stderr, "fleet-worker: %s\n", error.what());
    return 1;
  }
}
