// Declares command-line options: one call holds everything about an option. The reader
// (command_line.h), help, man pages and shell completion follow from it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"

namespace fleet {

struct Option {
  std::string key;                   // in the configuration; the flag is "--" + key
  std::vector<std::string> aliases;  // other flags: "redirect", "t" for -t, "-np" for -np alone
  std::vector<std::string>
      environment;           // environment variables of the option; the first that is set counts
  std::string value;         // kind of value, for the help: "LIST"; empty: a flag. "~/" of a FILE,
                             // DIR or PATH is expanded
  bool optional = false;     // if not given, it has no value: the default is a placeholder
  bool common = false;       // shown by --help; others only by --help all
  bool spread = false;       // a list that may have lost its quotes: "a, b" is two words
  bool internal = false;     // used between our own programs: not in any help
  std::string group;         // its title in the help; filled in by OptionGroup
  bool key_is_flag = true;   // false: only its aliases are flags
  int values = 1;            // number of words of its value: two for "--mca KEY VALUE"
  bool repeats = false;      // every occurrence counts; otherwise only the last
  bool foreign = false;      // an option of another launcher, translated to ours after reading
  std::string implied = {};  // value of --web alone; then a value needs "=": --web=ADDR:PORT
  std::vector<std::string> choices = {};  // all values; empty: others. Filled in by OptionGroup
  bool number = false;                    // likewise: its values are numbers
  bool never_empty = false;  // an empty value is refused; elsewhere it counts as not given

  bool is_flag() const { return value.empty(); }
  bool names_path() const {
    return value.starts_with("FILE") || value.starts_with("DIR") || value.starts_with("PATH");
  }
  // The flags as users write them: "--tee", and aliases: "-t" for an alias of one letter.
  std::vector<std::string> flags() const;
};

// The declared spelling of a flag: "--nproc-per-node" becomes "--nproc_per_node".
std::string canonical_flag(std::string flag);

// Options of one subject, in the order of the help.
class OptionGroup {
 public:
  explicit OptionGroup(std::string title = {}) : title_(std::move(title)) {}

  // --KEY VALUE. The methods correspond to those of Schema. The initial value is a placeholder if
  // the option is `optional`.
  OptionGroup& text(Option option, std::string initial, std::string help) {
    schema_.text(option.key, std::move(initial), std::move(help));
    if (option.names_path()) schema_.as_path();
    return add(std::move(option));
  }
  OptionGroup& texts(Option option, std::string help) {
    schema_.texts(option.key, {}, std::move(help));
    if (option.names_path()) schema_.as_path();
    return add(std::move(option));
  }
  OptionGroup& integer(Option option, int64_t initial, double min, double max, std::string help) {
    schema_.integer(option.key, initial, min, max, std::move(help));
    option.number = true;
    return add(std::move(option));
  }
  OptionGroup& number(Option option, double initial, double min, double max, std::string help) {
    schema_.number(option.key, initial, min, max, std::move(help));
    option.number = true;
    return add(std::move(option));
  }
  OptionGroup& choice(Option option, std::string initial, std::vector<std::string> choices,
                      std::string help) {
    option.choices = choices;
    schema_.choice(option.key, std::move(initial), std::move(choices), std::move(help));
    return add(std::move(option));
  }
  // --KEY alone, or --KEY=false.
  OptionGroup& flag(Option option, std::string help) {
    schema_.boolean(option.key, false, std::move(help));
    option.value.clear();
    return add(std::move(option));
  }
  // Adds all options of another group; they keep their own title.
  OptionGroup& include(OptionGroup other);

  const std::vector<Option>& options() const { return options_; }
  const Schema& schema() const { return schema_; }  // one key per option, in the same order

 private:
  OptionGroup& add(Option option) {
    option.group = title_;
    options_.push_back(std::move(option));
    return *this;
  }

  std::string title_;
  std::vector<Option> options_;
  Schema schema_;
};

// "  --gpus LIST             GPUs of ... (default ...)", with a newline. No line is longer than
// `columns`, unless a word is.
std::string option_help(const Option& option, const ConfigKey& key, size_t columns);

}  // namespace fleet
