// Writes fleetrun's man page and its completion for shells, from the definitions of its options:
// built, run once, not installed.
//
//   fleetrun-pages man | bash | zsh            of fleetrun, to standard output
//   fleetrun-pages man PROGRAM <help-text      of a program that prints its own help
#include <cstdio>
#include <iostream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "launch/options.h"

namespace fleet {
namespace {

constexpr char kSummary[] = "start synchronous collective training on one machine or a cluster";

// Flags that are no options with a value in the configuration: --help, --dry_run.
std::vector<std::string> other_flags() {
  std::set<std::string> known, found;
  for (const Option& option : launch_options()) {
    known.insert(option.key);
    known.insert(option.aliases.begin(), option.aliases.end());
  }
  const std::string text = help_tail();
  // Examples show programs' own options.
  const std::string before_examples = text.substr(0, text.find("\nexamples:"));
  static const std::regex flag("--([a-z_]+)");
  for (std::sregex_iterator at(before_examples.begin(), before_examples.end(), flag), end;
       at != end; ++at) {
    if (!known.contains((*at)[1])) found.insert((*at)[1]);
  }
  return {found.begin(), found.end()};
}

// Text as roff shows it.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool line_start = i == 0 || text[i - 1] == '\n';
    if (line_start && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::string man_head(const std::string& program, const std::string& summary) {
  std::string upper = program;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return ".TH " + upper + " 1 \"\" \"" + launch_version() + "\"\n.SH NAME\n" + roff(program) +
         " \\- " + roff(summary) + "\n";
}

std::string man() {
  std::string text = man_head("fleetrun", kSummary);
  text +=
      ".SH SYNOPSIS\n.B fleetrun\n[\\fIoptions\\fR] \\fIPROGRAM\\fR [\\fIarguments of the "
      "program\\fR]\n.SH DESCRIPTION\n" +
      roff(
          "Starts PROGRAM once a rank: a job file (.json), a .py, or any program, with the "
          "environment that Paddle's and PyTorch's programs expect. A flag wins over the "
          "environment, that over the default.") +
      "\n.SH OPTIONS\n";
  const std::vector<ConfigKey>& keys = launch_schema().keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const Option& option = launch_options()[i];
    text += ".TP\n";
    const std::vector<std::string> flags = option.flags();
    for (size_t n = 0; n < flags.size(); ++n) {
      text += std::string(n ? ", " : "") + "\\fB" + roff(flags[n]) + "\\fR";
    }
    if (!option.is_flag()) text += " \\fI" + roff(option.value) + "\\fR";
    text += "\n" + roff(keys[i].help) + ".";
    if (!keys[i].choices.empty()) text += " One of " + roff(join(keys[i].choices, ", ")) + ".";
    if (!option.optional && !option.is_flag())
      text += " Default: " + roff(keys[i].initial->text()) + ".";
    if (!option.environment.empty()) {
      text += " Environment: " + roff(join(option.environment, ", ")) + ".";
    }
    text += "\n";
  }
  text += ".SH MORE\n.nf\n" + roff(help_tail()) + ".fi\n.SH SEE ALSO\n.BR fleet\\-worker (1)\n";
  return text;
}

std::string man_of_help(const std::string& program, const std::string& help) {
  const std::string first = help.substr(0, help.find('\n'));
  return man_head(program, first) + ".SH USAGE\n.nf\n" + roff(help) +
         ".fi\n.SH SEE ALSO\n.BR fleetrun (1)\n";
}

// Every flag that takes a value of its own word, with its choices ("" where there are none).
std::string bash() {
  std::string flags, choices, folders;
  const std::vector<ConfigKey>& keys = launch_schema().keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const Option& option = launch_options()[i];
    for (const std::string& name : option.flags()) {
      const bool alone = option.is_flag() || !name.starts_with("--");
      flags += name + (alone ? " " : "= ");
      if (!keys[i].choices.empty()) {
        choices += "    " + name + ") COMPREPLY=($(compgen -W '" + join(keys[i].choices, " ") +
                   "' -- \"$word\")) ;;\n";
      } else if (option.value == "DIR") {
        choices += "    " + name + ") COMPREPLY=($(compgen -d -- \"$word\")) ;;\n";
      }
    }
  }
  for (const std::string& flag : other_flags()) flags += "--" + flag + " ";
  return "# Completion of fleetrun for bash. Made by fleetrun-pages.\n"
         "_fleetrun() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before= i\n"
         "  local flags='" +
         flags +
         "'\n"
         "  # Where the program stands: what follows it is the program's own.\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    [[ ${COMP_WORDS[i]} == -* || ${COMP_WORDS[i]} == '=' || ${COMP_WORDS[i - 1]} == '=' "
         "]] "
         "&& continue\n"
         "    [[ \" $flags \" == *\" ${COMP_WORDS[i - 1]}= \"* ]] && continue\n"
         "    COMPREPLY=($(compgen -f -- \"$word\"))\n"
         "    return\n"
         "  done\n"
         "  if [[ $word == '=' ]]; then\n"
         "    before=${COMP_WORDS[COMP_CWORD - 1]} word=\n"
         "  elif [[ ${COMP_WORDS[COMP_CWORD - 1]} == '=' ]]; then\n"
         "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  elif [[ \" $flags \" == *\" ${COMP_WORDS[COMP_CWORD - 1]}= \"* ]]; then\n"
         "    before=${COMP_WORDS[COMP_CWORD - 1]}\n"
         "  fi\n"
         "  case $before in\n"
         "    '')\n"
         "      if [[ $word == -* ]]; then\n"
         "        COMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n"
         "        [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null\n"
         "      else\n"
         "        COMPREPLY=($(compgen -f -- \"$word\") $(compgen -c -- \"$word\"))\n"
         "      fi ;;\n" +
         choices +
         "    *) COMPREPLY=() ;;\n"
         "  esac\n"
         "}\n"
         "complete -o filenames -F _fleetrun fleetrun\n";
}

// Within single quotes and within [..] of a specification.
std::string zsh_text(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out;
}

std::string zsh() {
  std::string text = "#compdef fleetrun\n# Made by fleetrun-pages.\n_arguments -S \\\n";
  const std::vector<ConfigKey>& keys = launch_schema().keys();
  for (size_t i = 0; i < keys.size(); ++i) {
    const Option& option = launch_options()[i];
    std::string action;
    if (!keys[i].choices.empty()) action = "(" + join(keys[i].choices, " ") + ")";
    if (option.value == "DIR") action = "_files -/";
    for (const std::string& name : option.flags()) {
      if (option.is_flag()) {
        text += "  '" + name + "[" + zsh_text(keys[i].help) + "]' \\\n";
        continue;
      }
      text += "  '" + name + (name.starts_with("--") ? "=[" : "+[") + zsh_text(keys[i].help) +
              "]:" + zsh_text(option.value) + ":" + action + "' \\\n";
    }
  }
  for (const std::string& flag : other_flags()) text += "  '--" + flag + "' \\\n";
  return text + "  '1:program:{_files; _command_names -e}' \\\n  '*::arguments:_normal'\n";
}

int run(const std::vector<std::string>& arguments) {
  const std::string kind = arguments.empty() ? "" : arguments[0];
  std::string text;
  if (kind == "man" && arguments.size() == 2) {
    const std::string help(std::istreambuf_iterator<char>(std::cin), {});
    text = man_of_help(arguments[1], help);
  } else if (kind == "man") {
    text = man();
  } else if (kind == "bash") {
    text = bash();
  } else if (kind == "zsh") {
    text = zsh();
  } else {
    std::fputs("usage: fleetrun-pages man [PROGRAM] | bash | zsh\n", stderr);
    return 2;
  }
  std::cout << text;
  return 0;
}

}  // namespace
}  // namespace fleet

int main(int argc, char** argv) { return fleet::run({argv + 1, argv + argc}); }
