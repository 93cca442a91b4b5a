#include "launch/arguments.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "base/command_line.h"
#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/compat/line.h"
#include "launch/program.h"
#include "launch/surroundings.h"
#include "launch/torchrun/translate.h"
#include "store/env.h"

namespace fleet {
namespace {

// Options of a start, options that start nothing, and options of other launchers.
const std::vector<Option>& known_options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> together = launch_options();
    for (const auto* more : {&look_at_options().options(), &compat_reader_options()}) {
      together.insert(together.end(), more->begin(), more->end());
    }
    return together;
  }();
  return all;
}

// Moves the options that start nothing out of `given`.
Settings take_look_options(std::vector<GivenOption>* given) {
  const std::vector<Option>& look = look_at_options().options();
  const auto first_look =
      std::stable_partition(given->begin(), given->end(), [&](const GivenOption& one) {
        return std::none_of(look.begin(), look.end(),
                            [&](const Option& option) { return option.key == one.option->key; });
      });
  ConfigTree tree;
  add_given({first_look, given->end()}, &tree);
  given->erase(first_look, given->end());
  return tree.validate(look_at_options().schema());
}

[[noreturn]] void refuse(const std::string& what, const std::string& where,
                         const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

// Rejects options of --dry_run without --dry_run: they would have no effect.
void check_dry_run(const Settings& look) {
  const bool wanted = look.boolean("dry_run"), rank = look.given("rank_env");
  if (!wanted && (look.given("format") || rank)) {
    refuse("it has no effect without --dry_run", look.given("format") ? "--format" : "--rank_env",
           "add --dry_run, or put the program's own arguments after the program");
  }
  if (wanted && look.boolean("print_config")) {
    refuse("it contradicts --print_config", "--dry_run", "give only one of them");
  }
  if (look.text("format") == "shell" && !rank) {
    refuse("it prints the environment of one rank", "--format shell",
           "choose the rank with --rank_env");
  }
}

void check_doctor(const Settings& look) {
  for (const char* key : {"dry_run", "rank_env"}) {
    if (!look.given(key)) continue;
    refuse("it applies only to a start", std::string("--") + key,
           "leave it out: fleetrun doctor does not start a job");
  }
  if (look.text("format") == "shell") {
    refuse("'shell' is not a format of fleetrun doctor", "--format", "use table or json");
  }
}

LaunchRequest::Action action_of(const Settings& look) {
  using Action = LaunchRequest::Action;
  return look.boolean("help")             ? Action::kHelp
         : look.boolean("version")        ? Action::kVersion
         : look.given("print_completion") ? Action::kPrintCompletion
         : look.boolean("print_config")   ? Action::kPrintConfig
                                          : Action::kRun;
}

// Inside a rank, the environment was set by the outer job for that rank, not for a job that it
// starts.
bool inside_rank() { return get_env(kEnvStoreAddress).has_value(); }

// --compat=torchrun changes the defaults.
bool acts_as_torchrun(const std::vector<GivenOption>& given) {
  return std::any_of(given.begin(), given.end(), [](const GivenOption& one) {
    return one.option->key == "compat" && one.value == "torchrun";
  });
}

// With --compat=torchrun, Paddle's environment variables are ignored.
const std::vector<Option>& options_without_paddles_twins() {
  static const std::vector<Option> all = [] {
    std::vector<Option> options = launch_options();
    for (Option& option : options) {
      std::erase_if(option.environment,
                    [](const std::string& name) { return !name.starts_with("FLEET"); });
    }
    return options;
  }();
  return all;
}

// The settings from the environment and from our own options.
ConfigTree tree_of(const std::vector<GivenOption>& given) {
  ConfigTree tree;
  if (acts_as_torchrun(given)) {
    add_torchrun_defaults(&tree);
    if (!inside_rank()) add_torchrun_environment(torchrun_machine(), &tree);
    if (!inside_rank()) add_environment(options_without_paddles_twins(), &tree);
  } else if (!inside_rank()) {
    add_environment(launch_options(), &tree);
    add_torchrun_environment(torchrun_machine(), &tree);
  }
  std::vector<GivenOption> ours;
  for (const GivenOption& one : given) {
    const bool is_setting = std::any_of(launch_options().begin(), launch_options().end(),
                                        [&](const Option& o) { return o.key == one.option->key; });
    if (is_setting) ours.push_back(one);
  }
  add_given(ours, &tree);
  return tree;
}

// Whether the word is an option of fleet-worker, which belongs after the job file.
bool is_workers(const std::string& word) {
  static const std::set<std::string> flags = {
      "--set",        "--predict",     "--export_onnx", "--print_keys", "--print_program",
      "--print_plan", "--print_flags", "--profile",     "--paddle",     "--save_strategy"};
  return flags.contains(canonical_flag(word.substr(0, word.find('='))));
}

// Reports all bad options at once.
CompatLine translate(const std::vector<std::string>& arguments, OptionWords* words) {
  CompatLine line(tree_of(words->options));
  line.translate(words);
  for (BadOption& bad : words->bad) {
    if (bad.what.empty() || !bad.next.empty()) continue;
    bad.next = "see fleetrun --help";
    if (bad.at >= arguments.size() || !is_workers(arguments[bad.at])) continue;
    bad.next = "it is an option of fleet-worker: write it after the job file";
    bad.instead = std::nullopt;
  }
  refuse_bad_options(line.prefix() + "fleetrun", arguments, words->bad, [](const auto& corrected) {
    OptionWords again =
        read_options(known_options(), corrected, PlainWord::kEndsOptions, is_program);
    CompatLine(tree_of(again.options)).translate(&again);
    return std::all_of(again.bad.begin(), again.bad.end(),
                       [](const BadOption& bad) { return bad.what.empty(); });
  });
  return line;
}

// The settings from the environment, the cluster environment and the command line.
Settings settings_of(const std::vector<GivenOption>& given, const CompatLine& line,
                     std::vector<IdleFlag>* idle) {
  ConfigTree tree = tree_of(given);
  for (const Translated& one : line.translated()) tree.set(one.key, one.value, one.flag);
  *idle = line.idle();
  const std::vector<IdleFlag> more = translate_torchrun(torchrun_machine(), &tree);
  idle->insert(idle->end(), more.begin(), more.end());
  if (!inside_rank()) add_surroundings(real_surroundings(), &tree);
  return tree.validate(launch_schema());
}

}  // namespace

LaunchRequest parse_arguments(const std::vector<std::string>& arguments, ArgumentsOf what) {
  OptionWords words = read_options(known_options(), arguments, PlainWord::kEndsOptions, is_program);
  const CompatLine line = translate(arguments, &words);
  const Settings look = take_look_options(&words.options);
  LaunchRequest request;
  request.action = action_of(look);
  request.program = std::move(words.words);
  if (request.action == LaunchRequest::Action::kHelp) {
    if (!request.program.empty()) request.help_on = request.program[0];
    return request;
  }
  if (request.action == LaunchRequest::Action::kVersion) return request;
  if (request.action == LaunchRequest::Action::kPrintCompletion) {
    request.shell = look.text("print_completion");
    return request;
  }
  what == ArgumentsOf::kStart ? check_dry_run(look) : check_doctor(look);
  request.dry_run = {look.boolean("dry_run"), look.text("format"),
                     static_cast<int>(look.integer("rank_env"))};
  std::vector<IdleFlag> idle;
  request.settings = settings_of(words.options, line, &idle);
  request.idle = idle_text(idle);
  if (request.program.empty() && what == ArgumentsOf::kStart &&
      request.action == LaunchRequest::Action::kRun) {
    const bool list = request.settings.given("ips");
    refuse("no program is given", {},
           std::string("give a job file, a .py or a program after the options") +
               (list ? " (after a comma, --ips continues with the next word)" : "") +
               "; see fleetrun --help");
  }
  return request;
}

bool answered(const LaunchRequest& request, const std::function<std::string()>& help,
              const std::function<std::string(const std::string&)>& completion) {
  std::string answer;
  switch (request.action) {
    case LaunchRequest::Action::kHelp:
      answer = help();
      break;
    case LaunchRequest::Action::kVersion:
      answer = launch_version() + "\n";
      break;
    case LaunchRequest::Action::kPrintConfig:
      answer = print_options(request.settings);
      break;
    case LaunchRequest::Action::kPrintCompletion:
      if (!completion) refuse("it applies only to a start", "--print_completion", "leave it out");
      answer = completion(request.shell);
      break;
    case LaunchRequest::Action::kRun:
      return false;
  }
  std::fputs(answer.c_str(), stdout);
  return true;
}

}  // namespace fleet
