#include "base/text.h"
#include "commands.h"
#include "launch/options.h"
#include "pages/pages.h"

namespace fleet {
namespace {

// Within single quotes and within [..] of a specification.
std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '\n') {
      out += ' ';
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string action_of(const Option& option, const ConfigKey& key) {
  if (!key.choices.empty()) return "(" + join(key.choices, " ") + ")";
  if (option.value == "DIR") return "_files -/";
  return option.value == "FILE" || option.value == "PATH" ? "_files" : "";
}

// A line of _arguments for each way to write an option.
std::string specifications(const OptionGroup& group) {
  std::string text;
  for (size_t i = 0; i < group.options().size(); ++i) {
    const Option& option = group.options()[i];
    const ConfigKey& key = group.schema().keys()[i];
    if (option.internal) continue;
    for (const std::string& name : option.flags()) {
      const std::string equals = option.is_flag() ? "" : name.starts_with("--") ? "=" : "+";
      const std::string value =
          option.is_flag() ? "" : ":" + quoted(option.value) + ":" + action_of(option, key);
      text += "    '" + name + equals + "[" + quoted(key.help) + "]" + value + "' \\\n";
    }
  }
  return text;
}

// A function of one way to call the program. `words`: what stands beside the options.
std::string function(const std::string& name, const OptionGroup& options,
                     const std::string& words) {
  return "_fleetrun_" + name + "() {\n  _arguments -S \\\n" + specifications(options) + words +
         "}\n\n";
}

constexpr char kHelp[] = "    '--help[what it takes]' \\\n";
constexpr char kJob[] = "    '1:job:_fleetrun_jobs'\n";
constexpr char kNoWords[] = "    '*: :'\n";
constexpr char kProgram[] =
    "    '1:program:{_files; _command_names -e}' \\\n    '*::arguments:_normal'\n";
constexpr char kProgramOrCommand[] =
    "    '1:program:_fleetrun_first' \\\n    '*::arguments:_normal'\n";

}  // namespace

std::string zsh_completion() {
  std::string text = "#compdef fleetrun\n# Made by fleetrun-pages.\n\n" +
                     function("start", start_and_look_options(), kProgramOrCommand);
  std::string described;
  for (const Command& command : commands()) {
    if (command.internal) continue;
    OptionGroup options = command.syntax.options;
    const bool of_a_job = command.syntax.words.find("JOB") != std::string::npos;
    if (command.run_words) options.include(launch_option_group());
    const std::string words = command.run_words ? kProgram : of_a_job ? kJob : kNoWords;
    text += function(command.name, options, kHelp + words);
    described += "    '" + command.name + ":" + quoted(command.summary()) + "'\n";
  }
  return text +
         "_fleetrun_jobs() {\n"
         "  local -a jobs\n"
         "  jobs=(${${(f)\"$(_call_program jobs fleetrun ls 2>/dev/null)\"}[2,-1]%% *})\n"
         "  compadd -a jobs\n"
         "}\n\n"
         "_fleetrun_first() {\n"
         "  local -a ours=(\n" +  // zsh has $commands of its own
         described +
         "  )\n"
         "  (( CURRENT == 2 )) && _describe command ours\n"
         "  _files\n"
         "  _command_names -e\n"
         "}\n\n"
         "if (( CURRENT > 2 && $+functions[_fleetrun_$words[2]] )) && [[ $words[2] != start ]]; "
         "then\n"
         "  local fleetrun_command=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  _fleetrun_$fleetrun_command\n"
         "else\n"
         "  _fleetrun_start\n"
         "fi\n";
}

}  // namespace fleet
