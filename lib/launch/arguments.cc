#include "launch/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "base/env.h"
#include "base/error.h"
#include "base/text.h"
#include "launch/surroundings.h"
#include "rendezvous/env.h"

namespace fleet {
namespace {

// Flags that take no value.
const std::vector<std::string>& lone_flags() {
  static const std::vector<std::string> all = {"--print_config", "--version", "--help", "-h",
                                               "--dry_run"};
  return all;
}

// An option that stands alone: --detach, which CLI11 would give the next word.
bool is_flag_option(const std::string& word) {
  return std::any_of(launch_options().begin(), launch_options().end(), [&](const Option& option) {
    return option.is_flag() && word == "--" + option.key;
  });
}

// Whether what stands here is an option, not yet the program.
bool is_option(const std::string& word) { return word.starts_with('-') && word != "--"; }

// Whether the next word is this flag's value.
bool takes_next(const std::string& flag) {
  const auto& lone = lone_flags();
  const bool with_value =
      flag.find('=') != std::string::npos || (!flag.starts_with("--") && flag.size() > 2);  // -t3
  return !with_value && !is_flag_option(flag) &&
         std::find(lone.begin(), lone.end(), flag) == lone.end();
}

std::vector<std::string> known_flags() {
  std::vector<std::string> all = lone_flags();
  all.insert(all.end(), {"--format", "--rank_env"});
  for (const Option& option : launch_options()) {
    const std::vector<std::string> flags = option.flags();
    all.insert(all.end(), flags.begin(), flags.end());
  }
  return all;
}

[[noreturn]] void unknown_flag(const std::string& argument) {
  const std::string flag = argument.substr(0, argument.find('='));
  const std::string name = flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
  const std::string reason = unsupported_reason(name);
  if (!reason.empty()) throw Error(ErrorCode::kUsage, reason, flag);
  const std::string nearest = nearest_name(flag, known_flags());
  throw Error(ErrorCode::kUsage, "unknown option '" + flag + "'", {},
              nearest.empty() ? "see fleetrun --help" : "did you mean '" + nearest + "'?");
}

// A list of addresses often loses its quotes: `--ips=10.0.0.1, 10.0.0.2 job.json`. The words after
// a comma then still belong to it.
std::vector<std::string> join_split_ips(std::vector<std::string> arguments) {
  for (size_t at = 0; at < arguments.size() && is_option(arguments[at]); ++at) {
    const std::string& flag = arguments[at];
    const bool ips = flag == "--ips" || flag.starts_with("--ips=");
    if (takes_next(flag)) ++at;
    while (ips && at + 1 < arguments.size() && arguments[at].ends_with(',')) {
      arguments[at] += arguments[at + 1];
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    }
  }
  return arguments;
}

// --detach: --detach=true.
std::vector<std::string> complete_flags(std::vector<std::string> arguments) {
  for (size_t at = 0; at < arguments.size() && is_option(arguments[at]);) {
    const size_t words = takes_next(arguments[at]) ? 2 : 1;
    if (is_flag_option(arguments[at])) arguments[at] += "=true";
    at += words;
  }
  return arguments;
}

// `--gpus=$GPUS` with an empty variable: not given, as an empty variable of the environment is. The
// argument parser would take the next word for its value.
std::vector<std::string> drop_empty(std::vector<std::string> arguments) {
  for (size_t at = 0; at < arguments.size() && is_option(arguments[at]);) {
    if (arguments[at].size() > 3 && arguments[at].ends_with('=')) {
      arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(at));
      continue;
    }
    at += takes_next(arguments[at]) ? 2 : 1;
  }
  return arguments;
}

// The options of --dry_run, which without it would have no effect.
void check_dry_run(const DryRun& wish, bool format_given, const std::string& rank) {
  const auto refuse = [](const std::string& what, const std::string& where,
                         const std::string& next) {
    throw Error(ErrorCode::kUsage, what, where, next);
  };
  if (!wish.wanted && (format_given || !rank.empty())) {
    refuse("it belongs to --dry_run", format_given ? "--format" : "--rank_env",
           "add --dry_run, or put the program's own arguments after the program");
  }
  if (wish.format != "table" && wish.format != "json" && wish.format != "shell") {
    refuse("'" + wish.format + "' is not a format", "--format", "table, json or shell");
  }
  if (wish.format == "shell" && rank.empty()) {
    refuse("a shell has one rank's environment", "--format shell", "say with --rank_env which one");
  }
}

void check_doctor(const DryRun& wish, const std::string& rank) {
  if (wish.wanted || !rank.empty()) {
    throw Error(ErrorCode::kUsage, "it belongs to a start",
                wish.wanted ? "--dry_run" : "--rank_env",
                "leave it out: fleetrun doctor starts nothing");
  }
  if (wish.format != "table" && wish.format != "json") {
    throw Error(ErrorCode::kUsage, "'" + wish.format + "' is not a format", "--format",
                "table or json");
  }
}

// PADDLE_X=1 switches a flag on.
std::string truth(const std::string& text) {
  return text == "1" ? "true" : text == "0" ? "false" : text;
}

int parse_rank(const std::string& text) {
  long long rank = -1;
  if (text.empty()) return -1;
  if (!parse_int(text, &rank) || rank < 0 || rank > 1 << 30) {
    throw Error(ErrorCode::kUsage, "'" + text + "' is not a rank", "--rank_env",
                "ranks are numbered from 0");
  }
  return static_cast<int>(rank);
}

}  // namespace

LaunchRequest parse_arguments(const std::vector<std::string>& arguments, ArgumentsOf what) {
  LaunchRequest request;
  std::map<std::string, std::string> flags;
  bool help = false, version = false, print_config = false;
  CLI::App app("fleetrun");
  app.set_help_flag();
  app.prefix_command();  // stops at the program: what follows is the program's
  for (const Option& option : launch_options()) {
    app.add_option(join(option.flags(), ","), flags[option.key])
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  }
  app.add_flag("-h,--help", help);
  app.add_flag("--version", version);
  app.add_flag("--print_config", print_config);
  std::string rank_env;
  app.add_flag("--dry_run", request.dry_run.wanted);
  app.add_option("--format", request.dry_run.format);
  app.add_option("--rank_env", rank_env);

  const std::vector<std::string> words = complete_flags(drop_empty(join_split_ips(arguments)));
  std::vector<std::string> reversed(words.rbegin(), words.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& error) {
    throw Error(ErrorCode::kUsage, error.what(), {}, "see fleetrun --help");
  }
  if (help || version) {
    request.action = help ? LaunchRequest::Action::kHelp : LaunchRequest::Action::kVersion;
    request.all_help = app.remaining() == std::vector<std::string>{"all"};
    return request;
  }
  request.program = app.remaining();
  if (!request.program.empty() && request.program[0] == "--") {
    request.program.erase(request.program.begin());
  } else if (!request.program.empty() && request.program[0].starts_with('-')) {
    unknown_flag(request.program[0]);
  }

  if (what == ArgumentsOf::kStart) {
    check_dry_run(request.dry_run, app.count("--format") > 0, rank_env);
  } else {
    check_doctor(request.dry_run, rank_env);
  }
  request.dry_run.rank = parse_rank(rank_env);

  ConfigTree tree;
  // Inside a rank the twins are the outer job's, set for that rank and not for a job it starts.
  const bool inside_rank = get_env(kEnvStoreAddress).has_value();
  for (const Option& option : launch_options()) {
    for (const std::string& name : option.environment) {
      if (inside_rank) break;
      if (const auto value = get_env(name)) {
        tree.set(option.key, option.is_flag() ? truth(*value) : *value, "environment " + name);
        break;
      }
    }
    if (app.count("--" + option.key) > 0)
      tree.set(option.key, flags[option.key], "--" + option.key);
  }
  if (!inside_rank) add_surroundings(real_surroundings(), &tree);
  request.settings = tree.validate(launch_schema());
  if (print_config) {
    request.action = LaunchRequest::Action::kPrintConfig;
  } else if (request.program.empty() && what == ArgumentsOf::kStart) {
    throw Error(ErrorCode::kUsage, "no program is given", {},
                "name a job file, a .py or a program after the options; see fleetrun --help");
  }
  return request;
}

}  // namespace fleet
