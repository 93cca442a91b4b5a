#include "base/command_line.h"

#include <cstdio>
#include <map>

#include "base/env.h"
#include "base/error.h"
#include "base/home_folder.h"
#include "base/json.h"
#include "base/terminal_width.h"
#include "base/text.h"

namespace fleet {
namespace {

[[noreturn]] void refuse_line(const std::string& what, const std::string& where,
                              const std::string& next) {
  throw Error(ErrorCode::kUsage, what, where, next);
}

bool asks_for_help(const std::vector<std::string>& arguments) {
  for (const std::string& word : arguments) {
    if (word == "--") return false;
    if (word == "--help" || word == "-h") return true;
  }
  return false;
}

// PADDLE_X=1, --x=True: the spellings of Python programs.
std::string truth(const std::string& text) {
  const std::string small = lower_case(text);
  for (const char* yes : {"1", "true", "yes", "on"}) {
    if (small == yes) return "true";
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    if (small == no) return "false";
  }
  return text;
}

// The name of the first word that the command takes: "job" of "[JOB]"; "" if it takes none.
std::string first_word(const CommandSyntax& syntax) {
  const std::string& words = syntax.words;
  const size_t begin = words.find_first_not_of("[");
  if (syntax.most == 0 || begin == std::string::npos) return {};
  const std::string name = words.substr(begin, words.find_first_of(" ].|", begin) - begin);
  return name == lower_case(name) ? std::string() : lower_case(name);
}

// An unknown option: --job_id=X of a command whose first word is the job.
void explain_unknown(const CommandSyntax& syntax, const std::string& given, BadOption* bad) {
  const size_t equals = std::min(given.find('='), given.size());
  const std::string flag = canonical_flag(given.substr(0, equals)), name = first_word(syntax);
  bad->instead = std::nullopt;  // without it, the line may be another command
  if (name.empty() || (flag != "--" + name && !flag.starts_with("--" + name + "_"))) return;
  const std::string value = given.substr(std::min(equals + 1, given.size()));
  bad->next = "write it without an option: " + syntax.program + " " + syntax.words;
  bad->instead.emplace();
  if (!value.empty()) bad->instead->push_back(value);
}

}  // namespace

void add_environment(const std::vector<Option>& options, ConfigTree* tree) {
  for (const Option& option : options) {
    for (const std::string& name : option.environment) {
      const auto value = get_env(name);
      if (!value) continue;
      tree->set(option.key, option.is_flag() ? truth(*value) : *value, "environment " + name);
      break;
    }
  }
}

void add_given(const std::vector<GivenOption>& given, ConfigTree* tree) {
  std::map<std::string, Json> lists;  // all values of an option that `repeats`
  for (const GivenOption& one : given) {
    std::string value = one.option->is_flag() ? truth(one.value) : one.value;
    if (one.option->repeats) {
      Json& list = lists[one.option->key];
      list.push_back(value);
      value = list.dump_lossy();
    }
    tree->set(one.option->key, value, "--" + one.option->key);
  }
}

std::string command_help(const CommandSyntax& syntax) {
  std::string text = "usage: " + syntax.program +
                     (syntax.options.options().empty() ? "" : " [options]") +
                     (syntax.words.empty() ? "" : " " + syntax.words) + "\n" + syntax.about + "\n";
  const size_t columns = help_width();
  text = wrapped_lines(text, columns);
  for (size_t i = 0; i < syntax.options.options().size(); ++i) {
    const Option& option = syntax.options.options()[i];
    if (!option.internal) text += option_help(option, syntax.options.schema().keys()[i], columns);
  }
  return text + wrapped_lines(syntax.more, columns);
}

std::optional<CommandLine> read_command_line(const CommandSyntax& syntax,
                                             const std::vector<std::string>& arguments) {
  if (asks_for_help(arguments)) return std::nullopt;
  const std::vector<Option>& known = syntax.options.options();
  const std::string see_help = "see " + syntax.program + " --help";
  // The program's own name precedes every message.
  const size_t blank = syntax.program.find(' ');
  const std::string command =
      blank == std::string::npos ? std::string() : syntax.program.substr(blank + 1);
  ParsedOptions given = read_options(known, arguments, PositionalWords::kInterleaved);
  for (BadOption& bad : given.bad) {
    const bool unknown = bad.where.empty();
    if (unknown) bad.where = command;
    if (!bad.next.empty()) continue;
    bad.next = see_help;
    if (unknown) explain_unknown(syntax, arguments[bad.at], &bad);
  }
  refuse_bad_options(syntax.program, arguments, given.bad, [&](const auto& corrected) {
    const ParsedOptions read = read_options(known, corrected, PositionalWords::kInterleaved);
    return read.bad.empty() && read.words.size() >= syntax.least &&
           read.words.size() <= syntax.most;
  });
  if (given.words.size() > syntax.most) {
    refuse_line("unexpected argument '" + given.words[syntax.most] + "'", command,
                syntax.takes_rest ? "write the command to run after --" : see_help);
  }
  if (given.words.size() < syntax.least) {
    refuse_line("missing argument: " + syntax.words, command,
                syntax.missing_word.empty() ? see_help : syntax.missing_word);
  }
  if (!given.rest.empty() && !syntax.takes_rest) {
    refuse_line("unexpected argument '" + given.rest[0] + "'", command, see_help);
  }
  for (std::string& word : given.words) {  // nothing but a path begins like this
    if (word == "~" || word.starts_with("~/")) word = expand_home(word);
  }
  ConfigTree tree;
  add_environment(known, &tree);
  add_given(given.options, &tree);
  return CommandLine{tree.validate(syntax.options.schema()), std::move(given.words),
                     std::move(given.rest)};
}

int run_command(const Command& command, const std::vector<std::string>& arguments) {
  if (command.run_unparsed) return command.run_unparsed(arguments);
  const auto line = read_command_line(command.syntax, arguments);
  if (line) return command.run(*line);
  std::fputs(command_help(command.syntax).c_str(), stdout);
  return 0;
}

}  // namespace fleet
