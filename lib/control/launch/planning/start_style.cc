#include "launch/planning/start_style.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "base/env.h"
#include "base/error.h"
#include "base/file.h"
#include "base/option_group.h"
#include "base/program_file.h"
#include "base/text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/program.h"

namespace fleet {
namespace {

// Options of the launchers of Paddle 2.0 to 3.0. Other launchers also have these: gpus, host,
// log_dir, log_level, nnodes, nproc_per_node, np, elastic_timeout.
constexpr std::string_view kOnlyPaddles[] = {
    "ascend_npus",
    "auto_cluster_config",
    "auto_parallel_config",
    "auto_tuner_json",
    "backend",
    "custom_devices",
    "dcus",
    "devices",
    "elastic_level",
    "elastic_pre_hook",
    "elastic_server",
    "enable_gpu_log",
    "force",
    "gcus",
    "gloo_port",
    "heter_device_num",
    "heter_devices",
    "heter_worker_num",
    "heter_workers",
    "http_port",
    "iluvatar_gpus",
    "ips",
    "job_id",
    "legacy",
    "log_overwrite",
    "master",
    "max_restart",
    "mlus",
    "npus",
    "rank",
    "run_mode",
    "scale",
    "selected_gpus",
    "selected_mlus",
    "selected_npus",
    "selected_xpus",
    "server_num",
    "servers",
    "sort_ip",
    "start_port",
    "trainer_num",
    "trainers",
    "with_gloo",
    "worker_num",
    "workers",
    "xpus",
};
static_assert(std::ranges::is_sorted(kOnlyPaddles));

constexpr size_t kMaxScriptBytes = 64 << 10;

bool mentions_paddle(const std::string& script) {
  return lower_case(script).find("paddle") != std::string::npos;
}

// "" if it is not a regular file that can be read.
std::string beginning_of(const std::string& path) {
  if (!is_file(path)) return {};  // to open a device may have an effect
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return {};
  try {
    std::string text(kMaxScriptBytes, '\0');
    text.resize(read_at(file, text.data(), text.size(), 0, path));
    return text;
  } catch (const Error&) {
    return {};  // the start will report it
  }
}

// Python runs a folder's __main__.py.
std::string text_of_path(const std::string& path) {
  std::error_code none;
  const bool folder = std::filesystem::is_directory(path, none);
  return beginning_of(folder ? path + "/__main__.py" : path);
}

// With its name, which may be all that can be found cheaply.
std::string text_of_module(const std::string& name) {
  std::string path = name;
  std::ranges::replace(path, '.', '/');
  std::vector<std::string> folders = split(env_or("PYTHONPATH", ""), ':');
  folders.insert(folders.begin(), ".");
  for (const std::string& folder : folders) {
    for (const char* ending : {".py", "/__main__.py"}) {
      const std::string text = beginning_of((folder.empty() ? "." : folder) + "/" + path + ending);
      if (!text.empty()) return name + "\n" + text;
    }
  }
  return name;
}

bool is_python(const std::string& name) { return name.starts_with("python"); }

bool is_shell(const std::string& name) {
  constexpr const char* kShells[] = {"sh", "bash", "dash", "ksh", "zsh"};
  return std::ranges::find(kShells, name) != std::end(kShells);
}

// The argument of an interpreter: `python3 -u train.py`, `sh -c COMMAND`.
std::string text_of_arguments(const std::vector<std::string>& program, bool python) {
  for (size_t i = 1; i < program.size(); ++i) {
    const std::string& word = program[i];
    if (!word.starts_with("-")) return text_of_path(word);
    const std::string next = i + 1 < program.size() ? program[i + 1] : "";
    if (word == "-c") return next.substr(0, kMaxScriptBytes);
    if (python && word == "-m") return text_of_module(next);
    if (python ? word == "-X" || word == "-W" : word == "-o") ++i;  // its value
  }
  return {};
}

std::string text_of_executable(const std::vector<std::string>& program) {
  const std::string& first = program.front();
  const std::string name = std::filesystem::path(first).filename().string();
  if (is_python(name) || is_shell(name)) return text_of_arguments(program, is_python(name));
  const bool is_path = first.find('/') != std::string::npos;
  const std::string text = beginning_of(is_path ? first : find_on_path(first));
  return text.starts_with("#!") ? text : std::string();
}

}  // namespace

bool is_only_paddles(const std::string& option) {
  const std::string flag = canonical_flag(option.substr(0, option.find('=')));
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  return std::ranges::binary_search(kOnlyPaddles, std::string_view(name));
}

StartStyle start_style(const StartFacts& facts) {
  if (facts.table && facts.table != TableStyle::kNone) return StartStyle::kTable;
  if (facts.level == "DEBUG") return StartStyle::kTable;
  if (facts.as_torchrun) return StartStyle::kSilent;
  if (facts.job_file) return StartStyle::kTable;
  if (facts.table) return StartStyle::kLine;
  const bool paddles = std::ranges::any_of(facts.options, is_only_paddles);
  return paddles || mentions_paddle(facts.script) ? StartStyle::kTable : StartStyle::kLine;
}

std::string script_text(const std::vector<std::string>& program, ProgramKind kind) {
  if (program.empty()) return {};
  const std::string& first = program.front();
  switch (kind) {
    case ProgramKind::kModule:
      return text_of_module(first);
    case ProgramKind::kScript:
    case ProgramKind::kRunPath:
      return text_of_path(first);
    case ProgramKind::kByName:
      if (first.ends_with(".py")) return text_of_path(first);
      return is_job_file(first) ? std::string() : text_of_executable(program);
    case ProgramKind::kExecutable:
      return text_of_executable(program);
  }
  return {};
}

StartFacts start_facts(const LaunchRequest& request, std::vector<std::string> options) {
  const LaunchConfig& config = request.config;
  StartFacts facts;
  facts.options = std::move(options);
  if (request.settings.given("table")) facts.table = config.logs.table;
  facts.level = config.logs.level;
  facts.as_torchrun = config.as_torchrun;
  facts.job_file = config.program_kind == ProgramKind::kByName && !request.program.empty() &&
                   is_job_file(request.program.front());
  facts.script = script_text(request.program, config.program_kind);
  return facts;
}

void keep_start_style(const LaunchRequest& request, std::vector<std::string>* arguments) {
  const StartStyle wanted = request.config.logs.start;
  if (start_style(start_facts(request, *arguments)) == wanted) return;
  arguments->push_back(wanted == StartStyle::kTable ? "--table=auto" : "--table=none");
}

}  // namespace fleet
