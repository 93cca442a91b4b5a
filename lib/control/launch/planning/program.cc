#include "launch/planning/program.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "base/child_process.h"
#include "base/env.h"
#include "base/error.h"
#include "base/home_folder.h"
#include "base/json.h"
#include "base/log.h"
#include "base/program_file.h"
#include "base/terminal_text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/environment.h"
#include "launch/planning/refuse.h"
#include "launch/planning/torchrun/translate.h"

namespace fleet {

bool is_file(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

namespace {

void refuse_folder(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return;
  refuse("this is a folder", path, "give a job file, a .py or a program");
}

void need_file(const std::string& path, const std::string& what) {
  refuse_folder(path);
  if (is_file(path) && ::access(path.c_str(), R_OK) == 0) return;
  refuse("cannot read the " + what, path, "give its path, with the options of fleetrun before it");
}

std::string require_program(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    if (is_executable(name)) return name;
    refuse_folder(name);
    if (!is_file(name)) {
      refuse("program not found", name, "give its path");
    }
    refuse("this file is not executable", name,
           "run chmod +x on it, or put its interpreter before it");
  }
  if (const std::string path = find_on_path(name); !path.empty()) return path;
  refuse("program not found in PATH", name,
         is_file(name) ? "to run the file in this folder write ./" + name
                       : "give a job file, a .py or a program");
}

// A script, a folder or a zip file.
void need_path(const std::string& path) {
  if (::access(path.c_str(), R_OK) == 0) return;
  refuse("cannot read the script", path,
         "give its path, with the options of the launcher before it; use --no_python for a "
         "program, --module for a module");
}

std::string need_worker(const std::string& worker) {
  if (is_executable(worker)) return worker;
  throw Error(ErrorCode::kNotFound, "fleet-worker, which runs job files, was not found", worker,
              "install it next to fleetrun, or build it: cmake --build --target fleet-worker");
}

std::string python() {
  const std::string name = get_env_path("PYTHON_EXEC").value_or("python3");
  return require_program(name.empty() ? "python3" : name);
}

constexpr char kRunPathProgram[] =
    "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')";

std::vector<std::string> with_rest(std::vector<std::string> command,
                                   const std::vector<std::string>& rest) {
  command.insert(command.end(), rest.begin(), rest.end());
  return command;
}

constexpr int kWrongInput = 2;  // exit code of an error that the user must correct

// Why there is no verdict, from how the worker ended.
std::string reason(const ChildResult& check) {
  const std::string said = last_line(check.error_output);
  return "exit code " + std::to_string(check.exit_code) + (said.empty() ? "" : ": " + said);
}

}  // namespace

bool is_program(const std::string& name) { return is_file(name) || !find_on_path(name).empty(); }

bool is_job_file(const std::string& program) { return program.ends_with(".json"); }

ProgramKind read_program_kind(const Settings& settings) {
  if (settings.boolean("module")) return ProgramKind::kModule;
  if (settings.boolean("run_path")) return ProgramKind::kRunPath;
  if (settings.boolean("no_python")) return ProgramKind::kExecutable;
  return is_torchrun_mode(settings) ? ProgramKind::kScript : ProgramKind::kByName;
}

std::vector<std::string> rank_command(const std::vector<std::string>& program,
                                      const std::string& worker, ProgramKind kind) {
  const std::string& first = program.front();
  if (kind == ProgramKind::kByName) {
    if (is_job_file(first)) {
      need_file(first, "job file");
      return with_rest({need_worker(worker)}, program);
    }
    const std::vector<std::string> rest(program.begin() + 1, program.end());
    if (!first.ends_with(".py")) return with_rest({require_program(first)}, rest);
    kind = ProgramKind::kScript;
  }
  if (program.size() > 1 && program[1] == "--") {
    std::vector<std::string> left = program;
    left.erase(left.begin() + 1);
    return rank_command(left, worker, kind);
  }
  switch (kind) {
    case ProgramKind::kModule:
      return with_rest({python(), "-u", "-m"}, program);
    case ProgramKind::kRunPath:
      need_path(first);
      return with_rest({python(), "-u", "-c", kRunPathProgram}, program);
    case ProgramKind::kScript:
      if (!first.ends_with(".py")) {
        need_path(first);  // Python runs folders and zip files too
      } else {
        need_file(first, "script");
      }
      return with_rest({python(), "-u"}, program);
    default: {
      const std::string path = require_program(first);
      return with_rest({path}, {program.begin() + 1, program.end()});
    }
  }
}

std::vector<std::string> placeholder_command(const std::vector<std::string>& command) {
  return with_rest({own_path(), "debug", kPlaceholderFlag, "--"}, command);
}

std::string own_path() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string default_worker_path() {
  return (std::filesystem::path(own_path()).parent_path() / "fleet-worker").string();
}

std::optional<JobVerdict> parse_job_verdict(const std::string& output) {
  try {
    const Json answer = Json::parse(last_line(output));
    JobVerdict verdict{answer.at("ok").get<bool>(), {}, 0, {}};
    if (verdict.ok) return verdict;
    verdict.code = answer.value("code", std::string());
    verdict.exit_code = answer.at("exit_code").get<int>();
    verdict.message = answer.at("message").get<std::string>();
    return verdict;
  } catch (const JsonError&) {
    return std::nullopt;
  }
}

// fleet-worker does not know the options that belong before the job file.
static std::string explained(const std::string& message) {
  constexpr std::string_view kUnknown = "unknown option '";
  // The worker's corrected line is not the user's.
  const std::string own = message.substr(0, message.find("\ncorrected: "));
  if (!own.starts_with(kUnknown)) return own;
  const size_t end = own.find('\'', kUnknown.size());
  const std::string word = own.substr(kUnknown.size(), end - kUnknown.size());
  if (!is_launch_option(word)) return own;
  return "'" + word + "' is an option of fleetrun: write it before the job file";
}

// This process's environment, with the variables of the first rank that a check of its job reads.
// The launcher may itself run inside a rank of another job.
static std::vector<std::string> environment_of(const PlannedRanks& ranks) {
  Variables set = {{"PADDLE_TRAINER_ID", "0"},
                   {"PADDLE_TRAINERS_NUM", std::to_string(ranks.world_size)},
                   {"PADDLE_LOCAL_SIZE", std::to_string(ranks.local_world_size)},
                   {"PADDLE_NNODES", std::to_string(ranks.nnodes)}};
  if (!ranks.devices.empty()) {
    set.emplace_back("FLAGS_selected_gpus", join_numbers(ranks.devices, ","));
  }
  std::vector<std::string> all = whole_environment();
  std::erase_if(all, [](const std::string& entry) {
    return entry.starts_with("PADDLE_PSERVERS_IP_PORT_LIST");  // also _FILE
  });
  for (const auto& [name, value] : set) {
    std::erase_if(all, [&](const std::string& entry) { return entry.starts_with(name + "="); });
    all.push_back(name + "=" + value);
  }
  return all;
}

// The message for wrong input; "" for any other verdict, because the ranks report other errors
// themselves.
static std::string wrong_input(const std::vector<std::string>& command, const PlannedRanks& ranks) {
  const ChildResult check = run_child({.words = command, .environment = environment_of(ranks)});
  const std::optional<JobVerdict> verdict = parse_job_verdict(check.output);
  if (!verdict) {
    spdlog::warn(
        "{}: no usable verdict on the job file ({}); the job starts without this check. "
        "Install fleetrun and fleet-worker of the same version",
        command.front(), shown_name(reason(check), 200));
    return "";
  }
  return !verdict->ok && verdict->exit_code == kWrongInput ? verdict->message : "";
}

void check_job_file(std::vector<std::string> command, const PlannedRanks& ranks) {
  command.insert(command.end(), {"--check", "--format=json"});
  if (ranks.servers > 0) command.push_back("--servers=" + std::to_string(ranks.servers));
  const std::string wrong = wrong_input(command, ranks);
  if (wrong.empty()) return;
  const PlannedRanks one{.servers = ranks.servers, .devices = ranks.devices};
  if (!ranks.exact && wrong_input(command, one).empty()) return;
  refuse(explained(wrong));
}

}  // namespace fleet
