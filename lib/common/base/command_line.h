// Reads command lines whose options are declared as an OptionGroup: `--KEY VALUE`, `--KEY=VALUE`,
// `--KEY` alone for a flag, and one letter: `-t 3`, `-t3`. In a name `-` equals `_`, and one dash
// before a name of several letters equals two. An empty value (`--gpus=$GPUS` with an empty
// variable) counts as not given, as an empty environment variable does.
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
  std::string value;         // "true" for a flag without a value
  std::string flag;          // as written: "--nproc-per-node"
  size_t at = 0, count = 1;  // its words on the command line
};
struct ParsedOptions {
  std::vector<GivenOption> options;  // each with its last value; every occurrence if it `repeats`
  std::vector<std::string> words;    // arguments that are not options
  std::vector<std::string> rest;     // arguments behind "--"
  std::vector<BadOption> bad;        // unknown options and missing values
};
enum class PositionalWords {
  kEndOptions,   // it and everything after it are `words`; a "--" before them is removed
  kInterleaved,  // options may follow it; "--" ends them, and everything behind it is `rest`
};
// Reads to the end of the options even if some are wrong: see `bad`. If a plain word ends the
// options, `is_program` tells a program from the value of an unknown option.
ParsedOptions read_options(const std::vector<Option>& known, const std::vector<std::string>& words,
                           PositionalWords plain,
                           const std::function<bool(const std::string&)>& is_program = {});

// The option with this flag ("--nproc-per-node"), spelled with - or _; nullptr if none.
const Option* find_flag(const std::vector<Option>& known, const std::string& flag);

// Adds to the tree the values from the environment variables of `options`, then the given values
// over them.
void add_environment(const std::vector<Option>& options, ConfigTree* tree);
void add_given(const std::vector<GivenOption>& given, ConfigTree* tree);

// --- a sub-command, or a small program ---

struct CommandSyntax {
  std::string program = {};  // "fleetrun logs", as messages and help name it
  std::string words = {};  // the arguments it takes besides options: "JOB", "[JOB] [-- WRAPPER...]"
  std::string about = {};  // its description: whole lines, the first is the summary
  OptionGroup options = OptionGroup();
  size_t least = 0, most = 0;     // number of arguments
  bool takes_rest = false;        // also takes the words behind "--"
  std::string missing_word = {};  // what to do if arguments are missing
  std::string more = {};          // lines at the end of the help
};
std::string command_help(const CommandSyntax& syntax);

struct CommandLine {
  Settings settings;               // one value for each option of the syntax
  std::vector<std::string> words;  // between `least` and `most` of them
  std::vector<std::string> rest;
};
// kUsage, pointing to --help, if the arguments do not fit the syntax. nullopt if --help (or -h) is
// among them.
std::optional<CommandLine> read_command_line(const CommandSyntax& syntax,
                                             const std::vector<std::string>& arguments);

// A sub-command of a program: `fleetrun NAME ...`.
struct Command {
  std::string name = {};
  CommandSyntax syntax = {};
  // The exit code. Throws Error.
  std::function<int(const CommandLine&)> run = {};
  // Instead of `run`: the command parses its own words; `syntax` is for help and completion only.
  std::function<int(const std::vector<std::string>&)> run_unparsed = {};
  // Instead of both: an alias of this option of the program, such as "--help".
  std::string instead = {};
  bool internal = false;  // not shown in any help

  std::string summary() const { return syntax.about.substr(0, syntax.about.find('\n')); }
};
// Prints the help if it is asked for, else runs the command. Returns the exit code.
int run_command(const Command& command, const std::vector<std::string>& arguments);

}  // namespace fleet
