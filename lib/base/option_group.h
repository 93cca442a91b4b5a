// How options of command lines are declared: an option is one call with everything about it, from
// which the reader (command_line.h), help, man pages and the shells' completion follow.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/config.h"

namespace fleet {

struct Option {
  std::string key;                       // in the configuration; "--" + key is the flag
  std::vector<std::string> aliases;      // other flags: "redirect", "t" for -t, "-np" for -np alone
  std::vector<std::string> environment;  // twins; the first that is set counts
  std::string value;                     // what the value is, for the help: "LIST"; empty: a flag
  bool optional = false;                 // the default stands for "not given"
  bool common = false;                   // --help shows it; the others only --help all
  bool spread = false;      // a list that may have lost its quotes: "a, b" is two words
  bool internal = false;    // between programs of ours: no help tells it
  std::string group;        // its subject, filled in by OptionGroup
  bool key_is_flag = true;  // false: only its aliases are
  int values = 1;           // words of its value: two of "--mca KEY VALUE"
  bool repeats = false;     // each time counts; otherwise the last one
  bool foreign = false;     // another launcher's, to be put into ours after reading

  bool is_flag() const { return value.empty(); }
  // As they are written: "--tee", and what else means it: "-t" where an alias is one letter.
  std::vector<std::string> flags() const;
};

// A flag as it is declared: "--nproc-per-node" is "--nproc_per_node".
std::string canonical_flag(std::string flag);

// Options of one subject, in the order in which help shows them.
class OptionGroup {
 public:
  explicit OptionGroup(std::string title = {}) : title_(std::move(title)) {}

  // --KEY VALUE, as the methods of Schema of the same names have it. The initial value is a
  // placeholder where the option is `optional`.
  OptionGroup& text(Option option, std::string initial, std::string help) {
    schema_.text(option.key, std::move(initial), std::move(help));
    return add(std::move(option));
  }
  OptionGroup& texts(Option option, std::string help) {
    schema_.texts(option.key, {}, std::move(help));
    return add(std::move(option));
  }
  OptionGroup& integer(Option option, int64_t initial, double min, double max, std::string help) {
    schema_.integer(option.key, initial, min, max, std::move(help));
    return add(std::move(option));
  }
  OptionGroup& number(Option option, double initial, double min, double max, std::string help) {
    schema_.number(option.key, initial, min, max, std::move(help));
    return add(std::move(option));
  }
  OptionGroup& choice(Option option, std::string initial, std::vector<std::string> choices,
                      std::string help) {
    schema_.choice(option.key, std::move(initial), std::move(choices), std::move(help));
    return add(std::move(option));
  }
  // --KEY alone; also --KEY=false.
  OptionGroup& flag(Option option, std::string help) {
    schema_.boolean(option.key, false, std::move(help));
    option.value.clear();
    return add(std::move(option));
  }
  // All of another group, which keep their own title.
  OptionGroup& include(const OptionGroup& other);

  const std::vector<Option>& options() const { return options_; }
  const Schema& schema() const { return schema_; }  // a key an option, in the same order

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

// "  --gpus LIST             GPUs of ... (default ...)", with a newline.
std::string option_help(const Option& option, const ConfigKey& key);

}  // namespace fleet
