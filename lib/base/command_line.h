// Reads command lines whose options are declared as an OptionGroup: `--KEY VALUE`, `--KEY=VALUE`,
// `--KEY` alone for a flag, and one letter: `-t 3`, `-t3`. In a name `-` equals `_`, and one dash
// before a name of several letters equals two. An empty value (`--gpus=$GPUS` with an empty
// variable) counts as not given, as an empty variable of the environment does.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/bad_options.h"
#include "base/config.h"
#include "base/option_group.h"

namespace fleet {

// --- any command line ---

struct GivenOption {
  const Option* option = nullptr;
  std::string value;         // "true" of a flag that stands alone
  std::string flag;          // as it was written: "--nproc-per-node"
  size_t at = 0, count = 1;  // its words in the line
};
struct OptionWords {
  std::vector<GivenOption> options;  // with its last value each; all of one that `repeats`
  std::vector<std::string> words;    // that are no options
  std::vector<std::string> rest;     // behind "--"
  std::vector<BadOption> bad;        // unknown ones, and values that are missing
};
enum class PlainWord {
  kEndsOptions,  // it and all that follows are `words`; a "--" before them is taken away
  kIsOne,        // options may follow it; "--" ends them, and all behind it is `rest`
};
// Reads to the end of the options, whatever is wrong with them: see `bad`. `is_program` tells a
// program from the value of an unknown option, where a plain word ends the options.
OptionWords read_options(const std::vector<Option>& known, const std::vector<std::string>& words,
                         PlainWord plain,
                         const std::function<bool(const std::string&)>& is_program = {});

// Into the tree: what of `options` their environment twins say, and over it what was given.
void add_environment(const std::vector<Option>& options, ConfigTree* tree);
void add_given(const std::vector<GivenOption>& given, ConfigTree* tree);

// --- a sub-command, or a small program ---

struct CommandSyntax {
  std::string program = {};  // "fleetrun logs", as messages and help name it
  std::string words = {};    // "JOB", "[JOB] [-- WRAPPER...]": what it takes beside options
  std::string about = {};    // what it does: whole lines, the first is its summary
  OptionGroup options = OptionGroup();
  size_t least = 0, most = 0;     // so many words
  bool takes_rest = false;        // and what is behind "--"
  std::string missing_word = {};  // what to do where words are missing
  std::string more = {};          // lines at the end of the help
};
std::string command_help(const CommandSyntax& syntax);

struct CommandLine {
  Settings settings;               // all of the syntax's options
  std::vector<std::string> words;  // as many as it says
  std::vector<std::string> rest;
};
// kUsage, pointing to its --help, for what the syntax does not have. Nothing where --help (or -h)
// is there.
std::optional<CommandLine> read_command_line(const CommandSyntax& syntax,
                                             const std::vector<std::string>& arguments);

// A sub-command of a program: `fleetrun NAME ...`.
struct Command {
  std::string name = {};
  CommandSyntax syntax = {};
  // The exit code. Throws Error.
  std::function<int(const CommandLine&)> run = {};
  // In place of `run`: it reads its words itself; the syntax is for help and completion.
  std::function<int(const std::vector<std::string>&)> run_words = {};
  // In place of both: it is another word for this option of the program: "--help".
  std::string instead = {};
  bool internal = false;  // no help tells it

  std::string summary() const { return syntax.about.substr(0, syntax.about.find('\n')); }
};
// Prints the help where it is asked for, else runs it; the exit code.
int run_command(const Command& command, const std::vector<std::string>& arguments);

}  // namespace fleet
