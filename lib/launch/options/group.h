// How options are declared: a group is one file of this folder, an option one call with everything
// about it. A new option is one such call; a new group one file and its line in options.cc.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "launch/options.h"

namespace fleet {

// Options of one subject, in the order in which help shows them.
class OptionGroup {
 public:
  explicit OptionGroup(std::string title) : title_(std::move(title)) {}

  // --KEY VALUE, as the methods of Schema of the same names have it. The initial value is a
  // placeholder where the option is `optional`.
  void text(Option option, std::string initial, std::string help) {
    schema_.text(option.key, std::move(initial), std::move(help));
    add(std::move(option));
  }
  void texts(Option option, std::string help) {
    schema_.texts(option.key, {}, std::move(help));
    add(std::move(option));
  }
  void integer(Option option, int64_t initial, double min, double max, std::string help) {
    schema_.integer(option.key, initial, min, max, std::move(help));
    add(std::move(option));
  }
  void number(Option option, double initial, double min, double max, std::string help) {
    schema_.number(option.key, initial, min, max, std::move(help));
    add(std::move(option));
  }
  void choice(Option option, std::string initial, std::vector<std::string> choices,
              std::string help) {
    schema_.choice(option.key, std::move(initial), std::move(choices), std::move(help));
    add(std::move(option));
  }
  // --KEY alone; also --KEY=false.
  void flag(Option option, std::string help) {
    schema_.boolean(option.key, false, std::move(help));
    option.value.clear();
    add(std::move(option));
  }

  const std::vector<Option>& options() const { return options_; }
  const Schema& schema() const { return schema_; }

 private:
  void add(Option option) {
    option.group = title_;
    options_.push_back(std::move(option));
  }

  std::string title_;
  std::vector<Option> options_;
  Schema schema_;
};

OptionGroup start_options();      // which nodes, devices and ranks
OptionGroup via_options();        // starting it on all nodes from one place
OptionGroup role_options();       // the parameter-server mode
OptionGroup supervise_options();  // how the job is watched, stopped and restarted
OptionGroup log_options();
OptionGroup check_options();  // before it starts
OptionGroup security_options();

}  // namespace fleet
