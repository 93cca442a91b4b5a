// fleet-worker: one rank of a training job.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "api/serve.h"
#include "api/worker.h"
#include "arguments.h"
#include "backend/cpu/wait_policy.h"
#include "base/commands.h"
#include "base/counted.h"
#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_size_signal.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/standard_streams.h"
#include "base/terminal_text.h"
#include "base/terminal_width.h"
#include "base/text.h"
#include "base/unblock_signals.h"
#include "exec/backend.h"
#include "explain_command.h"
#include "graph/op_reference.h"
#include "hf/export.h"
#include "hf/image_export.h"
#include "job_tree.h"
#include "observe/rank_progress.h"
#include "onnx/export.h"
#include "pack_command.h"
#include "ps/client.h"
#include "ps/explain.h"
#include "ps/job_tables.h"
#include "ps/saved_tables.h"
#include "rendezvous/store_client.h"
#include "store/env.h"
#include "store/store.h"
#include "strategy/reference.h"
#include "strategy/server_mode.h"
#include "strategy/strategy_file.h"
#include "train/device_settings.h"
#include "train/job_check.h"
#include "train/job_task.h"
#include "train/predict.h"
#include "train/trainer.h"

namespace fleet {
namespace {

// Prints the Plan for train.device, even if that is a GPU which this machine lacks: kernels then
// answer without a device.
void print_plan(BuiltProgram built, const std::string& backend, Device* device) {
  const PlanOptions options{.backend = backend, .device = device};
  std::fputs(plan_program(std::move(built.program), built.keep, options).text().c_str(), stdout);
}

// The ranks of the job: --ranks, else what the environment of a rank says.
int64_t world_of(const WorkerArguments& arguments) {
  return arguments.ranks > 0 ? arguments.ranks : env_int_or("PADDLE_TRAINERS_NUM", 1);
}

// Its parameter servers: --servers, else what the environment says.
int servers_of_line(const WorkerArguments& arguments) {
  return arguments.servers >= 0 ? arguments.servers : static_cast<int>(servers_from_env().size());
}

ProgramOptions program_options(const WorkerArguments& arguments) {
  const ProgramOptions options{
      .rank = static_cast<int>(arguments.rank >= 0 ? arguments.rank
                                                   : env_int_or("PADDLE_TRAINER_ID", 0)),
      .world = static_cast<int>(world_of(arguments)),
      .nodes = static_cast<int>(env_int_or("PADDLE_NNODES", 1)),
      .servers = servers_of_line(arguments)};
  if (options.rank >= options.world) {
    throw Error(ErrorCode::kUsage,
                "rank " + std::to_string(options.rank) + " of a job of " +
                    std::to_string(options.world) + " ranks",
                "--rank", "give the number of ranks with --ranks");
  }
  return options;
}

// fleetrun report shows it.
void keep_profile(const std::string& path, const std::string& profile) {
  try {
    write_file_atomically(path, profile);
  } catch (const Error& error) {
    spdlog::warn("{}", error.what());
  }
}

// Checks what these arguments would do. Returns what could not be checked, and why; "" if only the
// data were not checked.
std::string check(const WorkerArguments& arguments, const Job& job) {
  // The lines about each pass belong to a start.
  if (spdlog::get_level() == spdlog::level::info) spdlog::set_level(spdlog::level::warn);
  ProgramOptions options = program_options(arguments);
  options.backend = job_backend(job);
  if (!arguments.pack.empty() || !arguments.save_strategy.empty()) {  // these build no network
    check_job(job, options);
    return "";
  }
  const bool only_network = predicts(job) || !arguments.export_onnx.empty() ||
                            !arguments.export_hf.empty() || !arguments.export_timm.empty() ||
                            !arguments.export_torchvision.empty();
  if (only_network) return check_network_only(job, options);
  return check_training(job, options, [&](const Program& program) {
    if (options.servers == 0) return;
    ps::servers_explained(program, options.servers, ps::tables_of(job, program),
                          server_settings(strategy_from(job.strategy)).mode);  // or its error
  });
}

// The line of --print_config about parameter servers.
void print_mode(const Job& job, const ProgramOptions& options) {
  if (options.servers == 0) return;
  const ServerSettings settings = server_settings(strategy_from(job.strategy));
  std::printf("# %s: mode %s\n", counted(options.servers, "parameter server").c_str(),
              settings.text().c_str());
}

// Handles the printing options and --check; returns true if one was given. not_checked: see
// check().
bool print(const WorkerArguments& arguments, const ConfigTree& tree, std::string* not_checked) {
  if (arguments.print_keys) {
    std::fputs(job_schema(tree).help().c_str(), stdout);
    return true;
  }
  if (arguments.check) {
    *not_checked = check(arguments, make_job(tree));
    if (arguments.format != "text") return true;
    const std::string rest = not_checked->empty() ? "data not checked" : *not_checked;
    std::puts(escape_controls("job file OK (" + rest + ")").c_str());
    return true;
  }
  const bool program = !arguments.print_program.empty();
  if (!arguments.print_config && !program && !arguments.print_plan) return false;
  const Job job = make_job(tree);
  ProgramOptions options = program_options(arguments);
  if (arguments.print_config) {
    std::fputs(escape_controls(job.settings.print()).c_str(), stdout);
    print_mode(job, options);
    if (!program && !arguments.print_plan) check_job(job, options);
  }
  if (!program && !arguments.print_plan) return true;
  options.columns = expected_columns(job);
  const DeviceChoice choice = choose_device_to_print(job);
  const bool absent = !choice.missing.empty();
  options.backend = absent ? choice.missing : choice.device->backend();
  if (absent && !has_backend(options.backend)) {
    throw Error(
        ErrorCode::kUnsupported, "cannot print what a GPU would run: " + choice.reason,
        "train.device",
        "use --device cpu to print what the CPU runs; docs/how-to/gpu.md lists what a GPU needs");
  }
  if (absent) {
    spdlog::info("printed for a GPU without having one ({}): choices of its libraries are missing",
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
    spdlog::warn("left out of {}, because Paddle {} does not support it: {}",
                 arguments.save_strategy, arguments.paddle, join(left_out, ", "));
  }
}

int run_prediction(const Job& job, const World& world, Device& device,
                   const JobCommunicators& communicators, const Worker& worker) {
  Communicator* control =
      communicators.control ? communicators.control.get() : communicators.compute.get();
  const PredictResult result = predict(job, device,
                                       {.rank = world.rank,
                                        .world = world.size,
                                        .control = control,
                                        .store = world.store,
                                        .stop = worker.stop_signal(),
                                        .open_rows = ps::open_saved_tables});
  if (result.stopped_by != 0) return 128 + result.stopped_by;
  if (world.rank == 0) {
    const std::string& output = job.settings.text("predict.output");
    spdlog::info("predicted {} {}{} ({} could not be used){}", result.samples, result.unit,
                 result.samples == 1 ? "" : "s", result.failed, output == "-" ? "" : ": " + output);
  }
  return 0;
}

// Runs `fleet-worker NAME ...`: the part of a sub-command of fleetrun that needs the engine. False
// if the first word is no such name.
bool run_named_command(int argc, char** argv, int* code) {
  const Command* command = argc > 1 ? find_command(argv[1]) : nullptr;
  if (!command) return false;
  cpu::limit_spinning(argv);
  set_up_logging(env_or(kEnvLogLevel, "INFO"), "fleetrun");
  *code = run_command(*command, std::vector<std::string>(argv + 2, argv + argc));
  return true;
}

// For the log: "rank 0", "server 1".
std::string process_name() {
  const int server = server_from_env();
  return server >= 0 ? "server " + std::to_string(server)
                     : "rank " + env_or("PADDLE_TRAINER_ID", "0");
}

// not_checked: set by --check.
int run(int argc, char** argv, std::string* not_checked) {
  int code = 0;
  if (run_named_command(argc, argv, &code)) return code;
  WorkerArguments arguments;
  if (!parse_arguments(argc, argv, &arguments)) return 0;
  if (runs_operations(arguments)) cpu::limit_spinning(argv);
  if (!arguments.print_flags.empty()) {
    const bool markdown = arguments.print_flags == "markdown";
    std::fputs((markdown ? reference_markdown() : reference_text()).c_str(), stdout);
    return 0;
  }
  if (arguments.print_operations) {
    std::fputs(operations_markdown().c_str(), stdout);
    return 0;
  }
  set_up_logging(arguments.log_level, process_name());
  set_store_connector(connect_store_from_env);
  ConfigTree tree = read_job_tree({.file = arguments.job_file,
                                   .overrides = arguments.overrides,
                                   .device = arguments.device,
                                   .ranks = world_of(arguments),
                                   .servers = servers_of_line(arguments) > 0,
                                   .verbose = env_int_or("PADDLE_TRAINER_ID", 0) == 0});
  if (!arguments.predict.empty()) {
    tree.set("predict.input", Json(arguments.predict).dump(), "--predict");
  }
  if (print(arguments, tree, not_checked)) return 0;
  if (arguments.explain) {
    explain_job(arguments, tree, argv);
    return 0;
  }
  if (!arguments.pack.empty()) {
    pack_job(arguments, tree);
    return 0;
  }
  if (!arguments.save_strategy.empty()) {
    save(arguments, tree);
    return 0;
  }

  const Job job = make_job(tree);
  if (!arguments.export_onnx.empty()) {
    if (env_int_or("PADDLE_TRAINER_ID", 0) != 0) return 0;  // one rank writes the file
    std::puts(escape_controls(export_onnx(job, arguments.export_onnx)).c_str());
    return 0;
  }
  if (!arguments.export_timm.empty() || !arguments.export_torchvision.empty()) {
    if (env_int_or("PADDLE_TRAINER_ID", 0) != 0) return 0;  // one rank writes them
    const std::string line = arguments.export_timm.empty()
                                 ? export_torchvision(job, arguments.export_torchvision)
                                 : export_timm(job, arguments.export_timm);
    std::puts(escape_controls(line).c_str());
    return 0;
  }
  if (!arguments.export_hf.empty()) {
    if (env_int_or("PADDLE_TRAINER_ID", 0) != 0) return 0;  // one rank writes the folder
    const int64_t shard = arguments.shard_bytes > 0 ? arguments.shard_bytes : kShardBytes;
    std::puts(escape_controls(export_hugging_face(job, arguments.export_hf, shard)).c_str());
    return 0;
  }
  const Worker worker = join_job();
  const World& world = worker.world();
  if (world.server >= 0) {
    serve(job, world, worker.stop_signal());
    return 0;
  }
  std::optional<StartupStopTimeout> start(std::in_place);
  // A rank that has a GPU but computes on the CPU logs that itself, because other ranks may use
  // theirs.
  const DeviceChoice choice =
      choose_job_device(job, world.rank == 0 || get_env("FLAGS_selected_gpus"));
  for (const std::string& line : choice.device->description()) spdlog::info("{}", line);
  const JobCommunicators communicators = make_job_communicators(job, world, *choice.device);
  if (predicts(job)) {
    start.reset();  // an abrupt end would leave a partial output file
    return run_prediction(job, world, *choice.device, communicators, worker);
  }
  // Until the trainer says it itself.
  if (world.replacement > 0) ProgressWriter::from_env().set_replaceable(true);
  const RunStart of_run{.run = env_or(kEnvRun, ""),
                        .restarted = env_int_or(kEnvGeneration, 1) > 1 || world.replacement > 0};
  Trainer trainer(
      make_job_at_start(tree, world, *choice.device, communicators, false, of_run), *choice.device,
      {.rank = world.rank,
       .world = world.size,
       .nodes = world.node_count(),
       .communicator = communicators.compute.get(),
       .control = communicators.control.get(),
       .store = world.store,
       .servers = servers_of(job, world, *choice.device),
       .open_rows = ps::open_saved_tables,
       .exchange = communicators.exchange,
       .replacement = world.replacement,
       .replaced_step = world.replaced_step,
       .stop = worker.stop_signal(),
       .saves = worker.checkpoint_requests(),
       .terminal_width = static_cast<int>(env_int_or(kEnvTerminalWidth, terminal_width(1))),
       .run = of_run.run,
       .restarted = of_run.restarted});
  if (arguments.profile) trainer.session().executor().set_profiling(true);
  start.reset();
  const TrainResult result = trainer.run();
  if (arguments.profile && world.rank == 0) {
    const std::string profile = trainer.session().executor().profile();
    std::fputs(profile.c_str(), stdout);
    const bool evaluates = job.train.boolean("evaluate_only");  // the file is the training's
    if (!evaluates) keep_profile(trainer.folder() + "/profile.txt", profile);
  }
  return result.stopped_by == 0 ? 0 : 128 + result.stopped_by;
}

struct Failure {
  std::string code, message;
  int exit_code = 1;
};

// The exception that is being handled.
Failure current_failure() {
  try {
    throw;
  } catch (const NotFiniteError& error) {
    return {"not finite", error.what(), kExitNotFinite};
  } catch (const Error& error) {
    return {name_of(error.code()), error.what(), exit_code_for(error.code())};
  } catch (const std::exception& error) {
    return {name_of(ErrorCode::kInternal), escape_controls(text_with_limit(error)), 1};
  }
}

// --check --format json; docs/reference/job_file.md lists the keys.
void print_verdict(const Failure* failure, const std::string& not_checked) {
  Json verdict = {{"ok", !failure}};
  if (!failure && !not_checked.empty()) verdict["not_checked"] = not_checked;
  if (failure) {
    verdict["code"] = failure->code;
    verdict["exit_code"] = failure->exit_code;
    verdict["message"] = failure->message;
  }
  std::puts(verdict.dump_lossy().c_str());
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) {
  fleet::reserve_standard_streams();
  fleet::unblock_signals();  // before any thread starts
  fleet::ignore_file_size_signal();
  // A command that a user typed as `fleetrun NAME`.
  const bool named = argc > 1 && fleet::find_command(argv[1]);
  const char* program = named ? "fleetrun" : "fleet-worker";
  const bool gives_verdict = fleet::wants_json_verdict(argc, argv);
  std::string not_checked;
  int code = 1;
  try {
    code = fleet::run(argc, argv, &not_checked);
    if (gives_verdict) fleet::print_verdict(nullptr, not_checked);
  } catch (...) {
    const fleet::Failure failure = fleet::current_failure();
    code = failure.exit_code;
    if (gives_verdict) {
      fleet::print_verdict(&failure, not_checked);
    } else {
      std::fflush(stdout);
      std::fprintf(stderr, "%s: %s\n", program, failure.message.c_str());
    }
  }
  const bool wanted = code == 0 && !fleet::standard_output_is_closed();
  if (wanted && !fleet::flush_standard_output()) {
    std::fprintf(stderr, "%s: %s\n", program, fleet::kOutputLost);
    code = 1;
  }
  return code;
}
