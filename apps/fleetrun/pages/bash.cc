#include "base/text.h"
#include "commands.h"
#include "launch/options.h"
#include "pages/pages.h"

namespace fleet {
namespace {

// What stands behind a flag of its own word: words to choose from, @folder, @file, or nothing
// known.
std::string values_of(const Option& option, const ConfigKey& key) {
  if (!key.choices.empty()) return join(key.choices, " ");
  if (option.value == "DIR") return "@folder";
  if (option.value == "FILE" || option.value == "PATH") return "@file";
  return {};
}

// The entries of the two tables for the options of `name`; flags with a value end with "=".
void add_entries(const std::string& name, const OptionGroup& group, std::string* flags,
                 std::string* values) {
  std::string all;
  for (size_t i = 0; i < group.options().size(); ++i) {
    const Option& option = group.options()[i];
    if (option.internal) continue;
    const std::string known = values_of(option, group.schema().keys()[i]);
    for (const std::string& flag : option.flags()) {
      all += flag + (option.is_flag() ? " " : "= ");
      if (!known.empty()) *values += "  ['" + name + " " + flag + "']='" + known + "'\n";
    }
  }
  *flags += "  [" + name + "]='" + all + (name == "start" ? "" : "--help ") + "'\n";
}

// Everything but the tables: `fleetrun OPTIONS PROGRAM`, and `fleetrun COMMAND OPTIONS`.
constexpr char kFunction[] = R"bash(
_fleetrun_reply() { mapfile -t COMPREPLY < <(compgen "$@"); }

# An option as it is declared: in names a dash is an underscore.
_fleetrun_declared() {
  if [[ $1 == --?* ]]; then
    local name=${1%%=*}
    local bare=${name:2}
    printf -- '--%s%s' "${bare//-/_}" "${1:${#name}}"
  else
    printf '%s' "$1"
  fi
}

_fleetrun() {
  local word=${COMP_WORDS[COMP_CWORD]} what=start before= flags values i last
  local -a words=()
  # `--flag=value` comes as three words.
  for ((i = 1; i <= COMP_CWORD; ++i)); do
    last=$((${#words[@]} - 1))
    if ((last >= 0)) && [[ ${words[last]} == -* && (${COMP_WORDS[i]} == '=' || ${words[last]} == *=) ]]; then
      words[last]+=${COMP_WORDS[i]}
    else
      words+=("${COMP_WORDS[i]}")
    fi
  done
  [[ $word != '=' ]] || word=
  if ((${#words[@]} > 1)) && [[ ${words[0]} != start && -n ${_fleetrun_flags[${words[0]:-start}]-} ]]; then
    what=${words[0]}
    words=("${words[@]:1}")
  fi
  flags=${_fleetrun_flags[$what]}
  last=$((${#words[@]} - 1))
  for ((i = 0; i < last; ++i)); do
    case ${words[i]} in
      --) _fleetrun_reply -f -c -- "$word"; return ;;
      -*=*) ;;
      -*) if [[ " $flags" == *" $(_fleetrun_declared "${words[i]}")= "* ]] && ((++i == last)); then
          before=${words[i - 1]}
        fi ;;
      # What follows the program is its own.
      *) if [[ $what == start || $what == doctor ]]; then _fleetrun_reply -f -- "$word"; return; fi ;;
    esac
  done
  [[ -n $before || ${words[last]} != --*=* ]] || before=${words[last]%%=*}
  if [[ -n $before ]]; then
    values=${_fleetrun_values["$what $(_fleetrun_declared "$before")"]-}
    case $values in
      '') COMPREPLY=() ;;
      @folder) _fleetrun_reply -d -- "$word" ;;
      @file) _fleetrun_reply -f -- "$word" ;;
      *) _fleetrun_reply -W "$values" -- "$word" ;;
    esac
  elif [[ $word == -* ]]; then
    _fleetrun_reply -W "$flags" -- "$(_fleetrun_declared "$word")"
    if [[ ${COMPREPLY[0]-} == *= ]]; then compopt -o nospace 2>/dev/null; fi
  elif [[ $what == help ]]; then
    _fleetrun_reply -W "$_fleetrun_commands all" -- "$word"
  elif [[ " $_fleetrun_of_a_job " == *" $what "* ]]; then
    _fleetrun_reply -W "$("${COMP_WORDS[0]}" ls 2>/dev/null | sed '1d; s/ .*//')" -- "$word"
  elif [[ $what == start && $last == 0 ]]; then
    _fleetrun_reply -f -c -W "$_fleetrun_commands" -- "$word"
  elif [[ $what == start || $what == doctor ]]; then
    _fleetrun_reply -f -c -- "$word"
  else
    COMPREPLY=()
  fi
}
complete -o filenames -F _fleetrun fleetrun
)bash";

}  // namespace

std::string bash_completion() {
  std::string flags, values, names, of_a_job;
  add_entries("start", start_and_look_options(), &flags, &values);
  for (const Command& command : commands()) {
    if (command.internal) continue;
    OptionGroup options = command.syntax.options;
    // A command that reads its words itself takes the options of a start.
    if (command.run_words) options.include(launch_option_group());
    add_entries(command.name, options, &flags, &values);
    names += command.name + " ";
    if (command.syntax.words.find("JOB") != std::string::npos) of_a_job += command.name + " ";
  }
  return "# Completion of fleetrun for bash. Made by fleetrun-pages.\n"
         "declare -gA _fleetrun_flags=(\n" +
         flags + ")\ndeclare -gA _fleetrun_values=(\n" + values + ")\n_fleetrun_commands='" +
         names + "'\n_fleetrun_of_a_job='" + of_a_job + "'\n" + kFunction;
}

}  // namespace fleet
