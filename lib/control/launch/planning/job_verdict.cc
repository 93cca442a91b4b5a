#include "launch/planning/job_verdict.h"

#include "base/child_process.h"
#include "base/json.h"
#include "base/log.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "launch/planning/arguments.h"
#include "launch/planning/refuse.h"

namespace fleet {
namespace {

constexpr int kWrongInput = 2;  // exit code of an error that the user must correct

std::string last_line(std::string_view text) {
  text = trim(text);
  return std::string(text.substr(text.rfind('\n') + 1));
}

// Why there is no verdict, from how the worker ended.
std::string reason(const ChildResult& check) {
  const std::string said = last_line(check.error_output);
  return "exit code " + std::to_string(check.exit_code) + (said.empty() ? "" : ": " + said);
}

}  // namespace

std::optional<JobVerdict> parse_job_verdict(const std::string& output) {
  const auto answer = Json::try_parse(last_line(output));
  if (!answer) return std::nullopt;
  const Json *ok = answer->find("ok"), *code = answer->find("code"),
             *exit_code = answer->find("exit_code"), *message = answer->find("message");
  if (!ok || !ok->is_boolean()) return std::nullopt;
  JobVerdict verdict{ok->get<bool>(), {}, 0, {}};
  if (verdict.ok) return verdict;
  if (!exit_code || !exit_code->is_number_integer()) return std::nullopt;
  if (!message || !message->is_string()) return std::nullopt;
  verdict.exit_code = exit_code->get<int>();
  verdict.message = message->get<std::string>();
  if (code && code->is_string()) verdict.code = code->get<std::string>();
  return verdict;
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

void check_job_file(std::vector<std::string> command) {
  const std::string worker = command.front();
  command.insert(command.end(), {"--check", "--format=json"});
  const ChildResult check = run_child({.words = std::move(command)});
  const std::optional<JobVerdict> verdict = parse_job_verdict(check.output);
  if (!verdict) {
    spdlog::warn(
        "{}: no usable verdict on the job file ({}); the job starts without this check. "
        "Install fleetrun and fleet-worker of the same version",
        worker, shown_name(reason(check), 200));
    return;
  }
  // The ranks report any other error themselves.
  if (!verdict->ok && verdict->exit_code == kWrongInput) {
    refuse(explained(verdict->message));
  }
}

}  // namespace fleet
