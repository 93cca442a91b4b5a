#include "launch/planning/arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>

#include "base/command_line.h"
#include "base/env.h"
#include "base/home_folder.h"
#include "base/text.h"
#include "launch/planning/cluster_environment.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/environment.h"
#include "launch/planning/mpi_library.h"
#include "launch/planning/options.h"
#include "launch/planning/program.h"
#include "launch/planning/refuse.h"
#include "launch/planning/start_style.h"
#include "launch/planning/torchrun/translate.h"
#include "store/env.h"
#include "store/worker_options.h"

namespace fleet {
namespace {

std::vector<Option> joined(std::vector<Option> options, const std::vector<Option>& more) {
  options.insert(options.end(), more.begin(), more.end());
  return options;
}

// Options of a start, and options that start nothing.
const std::vector<Option>& own_options() {
  static const auto all = joined(launch_options(), inspect_options().options());
  return all;
}

// Moves the options that start nothing out of `given`.
Settings take_inspect_options(std::vector<GivenOption>* given) {
  const std::vector<Option>& inspect = inspect_options().options();
  const auto first_inspect =
      std::stable_partition(given->begin(), given->end(), [&](const GivenOption& one) {
        return std::none_of(inspect.begin(), inspect.end(),
                            [&](const Option& option) { return option.key == one.option->key; });
      });
  ConfigTree tree;
  add_given({first_inspect, given->end()}, &tree);
  given->erase(first_inspect, given->end());
  return tree.validate(inspect_options().schema());
}

// Rejects options of --dry_run without --dry_run: they would have no effect.
void check_dry_run(const Settings& inspect) {
  const bool wanted = inspect.boolean("dry_run"), rank = inspect.given("rank_env");
  if (!wanted && (inspect.given("format") || rank)) {
    refuse("it has no effect without --dry_run",
           inspect.given("format") ? "--format" : "--rank_env",
           "add --dry_run, or put the program's own arguments after the program");
  }
  if (wanted && inspect.boolean("print_config")) {
    refuse("it contradicts --print_config", "--dry_run", "give only one of them");
  }
  if (inspect.text("format") == "shell" && !rank) {
    refuse("it prints the environment of one rank", "--format shell",
           "choose the rank with --rank_env");
  }
}

void check_doctor(const Settings& inspect) {
  for (const char* key : {"dry_run", "rank_env"}) {
    if (!inspect.given(key)) continue;
    refuse("it applies only to a start", std::string("--") + key,
           "leave it out: fleetrun doctor does not start a job");
  }
  if (inspect.text("format") == "shell") {
    refuse("'shell' is not a format of fleetrun doctor", "--format", "use table or json");
  }
}

LaunchRequest::Action action_of(const Settings& inspect) {
  using Action = LaunchRequest::Action;
  return inspect.boolean("help")             ? Action::kHelp
         : inspect.boolean("version")        ? Action::kVersion
         : inspect.given("print_completion") ? Action::kPrintCompletion
         : inspect.boolean("print_config")   ? Action::kPrintConfig
                                             : Action::kRun;
}

// Inside a rank, the environment was set by the outer job for that rank, not for a job that it
// starts.
bool inside_rank() { return get_env(kEnvStoreAddress).has_value(); }

// --compat=torchrun changes the defaults.
bool is_torchrun_mode(const std::vector<GivenOption>& given) {
  return std::any_of(given.begin(), given.end(), [](const GivenOption& one) {
    return one.option->key == "compat" && one.value == "torchrun";
  });
}

// Reads the line, and writes out its abbreviated flags. Most lines have no option of another
// launcher. To declare those hundreds takes a tenth of the time of a start.
ParsedOptions read_line(std::vector<std::string>* arguments) {
  constexpr auto kEndOptions = PositionalWords::kEndOptions;
  ParsedOptions words = read_options(own_options(), *arguments, kEndOptions, is_program);
  const bool only_ours =
      words.bad.empty() && std::ranges::none_of(words.options, [](const GivenOption& given) {
        return may_be_foreign(*given.option);
      });
  if (only_ours) return words;
  do {
    words = read_options(launch_line_options(), *arguments, kEndOptions, is_program);
  } while (expand_abbreviations(launch_line_options(), words, is_torchrun_mode(words.options),
                                arguments));
  return words;
}

// With --compat=torchrun, Paddle's environment variables are ignored.
const std::vector<Option>& options_without_paddle_variables() {
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
  if (is_torchrun_mode(given)) {
    add_torchrun_defaults(&tree);
    if (!inside_rank()) add_torchrun_environment(torchrun_machine(), &tree);
    if (!inside_rank()) add_environment(options_without_paddle_variables(), &tree);
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

// Whether a word of a command line, "--key" or "--key=value", is one of these options.
bool is_flag_of(const std::vector<Option>& options, const std::string& word) {
  const std::string flag = canonical_flag(word.substr(0, word.find('=')));
  return std::ranges::any_of(options, [&](const Option& option) {
    const std::vector<std::string> flags = option.flags();
    return !option.internal && std::find(flags.begin(), flags.end(), flag) != flags.end();
  });
}

// Whether the word is an option of fleet-worker, which belongs after the job file.
bool is_workers(const std::string& word) { return is_flag_of(worker_options().options(), word); }

// A program or job file below the home folder; another name that begins with '~' stays.
std::string with_home(const std::string& program) {
  return program.starts_with("~/") ? expand_home(program) : program;
}

// Reports all bad options at once.
CompatLine translate(const std::vector<std::string>& arguments, ParsedOptions* words) {
  CompatLine line(tree_of(words->options));
  line.translate(words);
  for (BadOption& bad : words->bad) {
    if (bad.what.empty()) continue;
    const bool unknown = bad.what.starts_with("unknown option");
    if (unknown && bad.at < arguments.size() && is_workers(arguments[bad.at])) {
      bad.next = "it is an option of fleet-worker: write it after the job file";
      bad.instead = std::nullopt;
    } else if (bad.next.empty()) {
      bad.next = "see fleetrun --help";
      if (unknown) bad.instead = std::nullopt;  // without it, the line may be another job
    }
  }
  refuse_bad_options(line.prefix() + "fleetrun", arguments, words->bad, [](const auto& corrected) {
    ParsedOptions again =
        read_options(launch_line_options(), corrected, PositionalWords::kEndOptions, is_program);
    CompatLine(tree_of(again.options)).translate(&again);
    return std::all_of(again.bad.begin(), again.bad.end(),
                       [](const BadOption& bad) { return bad.what.empty(); });
  });
  return line;
}

// An MPI program learns its rank from the variables of its library. A line with an option that only
// mpirun has starts one. Returns what the user should know; "" if nothing is chosen.
std::string choose_mpi_dialect(const CompatLine& line, const std::string& program,
                               ConfigTree* tree) {
  const std::string flag = line.flag_only_of("mpirun");
  for (const char* key : {"dialect", "servers", "server_num"}) {
    if (tree->peek(key)) return {};
  }
  const auto library = flag.empty() ? std::nullopt : mpi_library_of(program);
  if (!library) return {};
  std::vector<std::string> dialects = RankContext().dialects;
  dialects.push_back(library->dialect);
  tree->set("dialect", list_option(dialects), flag + " and " + library->name);
  const bool needs_mpirun = library->dialect == "openmpi";
  return flag + ": the program links " + library->name +
         ", so the ranks get --dialect=" + list_option(dialects) +
         (needs_mpirun ? "; but MPI_Init of Open MPI finds no other rank without its own mpirun"
                       : "");
}

// The settings from the environment, the cluster environment and the command line.
Settings settings_of(const std::vector<GivenOption>& given, const CompatLine& line,
                     LaunchRequest* request, std::vector<IgnoredFlag>* ignored) {
  ConfigTree tree = tree_of(given);
  for (const TranslatedOption& one : line.translated()) tree.set(one.key, one.value, one.flag);
  if (!request->program.empty()) {
    const std::string note = choose_mpi_dialect(line, request->program[0], &tree);
    if (!note.empty()) request->notes.push_back(note);
  }
  *ignored = line.ignored();
  const std::vector<IgnoredFlag> more = translate_torchrun(torchrun_machine(), &tree);
  ignored->insert(ignored->end(), more.begin(), more.end());
  if (!inside_rank()) request->warnings = add_cluster_settings(real_cluster_environment(), &tree);
  return tree.validate(launch_schema());
}

// The shortest text that reads back as exactly this number.
std::string exact_text(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string value_of(const Settings& settings, const ConfigKey& key) {
  switch (key.type) {
    case ConfigType::kBool:
      return settings.boolean(key.path) ? "true" : "false";
    case ConfigType::kInteger:
      return std::to_string(settings.integer(key.path));
    case ConfigType::kNumber:
      return exact_text(settings.number(key.path));
    case ConfigType::kTexts:
      return list_option(settings.texts(key.path));
    default:
      return settings.text(key.path);
  }
}

}  // namespace

const std::vector<Option>& launch_line_options() {
  static const auto all = joined(own_options(), compat_reader_options());
  return all;
}

bool is_launch_option(const std::string& word) { return is_flag_of(own_options(), word); }

LaunchRequest parse_arguments(const std::vector<std::string>& given, ArgumentsFor what) {
  std::vector<std::string> arguments = given;
  ParsedOptions words = read_line(&arguments);
  std::vector<std::string> flags;
  for (const GivenOption& option : words.options) flags.push_back(option.flag);
  const CompatLine line = translate(arguments, &words);
  const Settings inspect = take_inspect_options(&words.options);
  LaunchRequest request;
  request.action = action_of(inspect);
  request.program = std::move(words.words);
  refuse_several_programs(request.program, line);
  // Its arguments are left to it.
  if (!request.program.empty()) request.program[0] = with_home(request.program[0]);
  if (request.action == LaunchRequest::Action::kHelp) {
    if (!request.program.empty()) request.help_on = request.program[0];
    return request;
  }
  if (request.action == LaunchRequest::Action::kVersion) return request;
  if (request.action == LaunchRequest::Action::kPrintCompletion) {
    request.shell = inspect.text("print_completion");
    return request;
  }
  what == ArgumentsFor::kStart ? check_dry_run(inspect) : check_doctor(inspect);
  request.dry_run = {inspect.boolean("dry_run"), inspect.text("format"),
                     static_cast<int>(inspect.integer("rank_env"))};
  std::vector<IgnoredFlag> ignored;
  request.settings = settings_of(words.options, line, &request, &ignored);
  request.ignored = ignored_flags_text(ignored);
  request.notes.insert(request.notes.end(), line.notes().begin(), line.notes().end());
  if (request.program.empty() && what == ArgumentsFor::kStart &&
      request.action == LaunchRequest::Action::kRun) {
    const bool list = request.settings.given("ips");
    refuse("no program is given", {},
           std::string("give a job file, a .py or a program after the options") +
               (list ? " (after a comma, --ips continues with the next word)" : "") +
               "; see fleetrun --help");
  }
  if (request.action == LaunchRequest::Action::kRun) {
    request.config = read_launch_config(request.settings);
    request.config.logs.start = start_style(start_facts(request, std::move(flags)));
  }
  return request;
}

bool print_if_requested(const LaunchRequest& request, const std::function<std::string()>& help,
                        const std::function<std::string(const std::string&)>& completion,
                        const std::string& build_info) {
  std::string output;
  switch (request.action) {
    case LaunchRequest::Action::kHelp:
      output = help();
      break;
    case LaunchRequest::Action::kVersion:
      output = launch_version() + "\n" + (build_info.empty() ? "" : build_info + "\n");
      break;
    case LaunchRequest::Action::kPrintConfig:
      output = print_options(request.settings);
      break;
    case LaunchRequest::Action::kPrintCompletion:
      if (!completion) refuse("it applies only to a start", "--print_completion", "leave it out");
      output = completion(request.shell);
      break;
    case LaunchRequest::Action::kRun:
      return false;
  }
  std::fputs(output.c_str(), stdout);
  return true;
}

std::string list_option(const std::vector<std::string>& entries) {
  const std::string plain = join(entries, ",");
  const bool has_comma = static_cast<size_t>(std::count(plain.begin(), plain.end(), ',')) + 1 !=
                         std::max<size_t>(entries.size(), 1);
  if (!has_comma) return plain;
  return ConfigValue{std::vector<ConfigValue::Scalar>(entries.begin(), entries.end())}.text();
}

std::vector<std::string> given_flags(const LaunchRequest& request,
                                     const std::set<std::string>& except) {
  const Settings& settings = request.settings;
  std::vector<std::string> all;
  std::set<std::string> left_out = except;
  for (const InapplicableOption& inapplicable : inapplicable_options(request))
    left_out.insert(inapplicable.key);
  for (const ConfigKey& key : launch_schema().keys()) {
    if (!settings.given(key.path) || left_out.contains(key.path)) continue;
    all.push_back("--" + key.path + "=" + value_of(settings, key));
  }
  return all;
}

std::vector<std::string> shell_words(const std::string& text, const std::string& origin) {
  std::vector<std::string> words;
  std::optional<std::string> word;
  char quote = 0;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    const bool escapes = c == '\\' && quote != '\'' && at + 1 < text.size();
    if (escapes) {
      word = word.value_or("") + text[++at];
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      word = word.value_or("");  // '' is an empty word
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      if (word) words.push_back(std::move(*word));
      word.reset();
    } else {
      word = word.value_or("") + c;
    }
  }
  if (quote != 0) {
    refuse(std::string("the quote ") + quote + " is not closed", origin, "quote it as in a shell");
  }
  if (word) words.push_back(std::move(*word));
  return words;
}

}  // namespace fleet
