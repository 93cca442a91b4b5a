// Translates options of other launchers on a command line into ours.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "launch/planning/compat/option.h"

namespace fleet {

// An option that was accepted but has no effect, and why.
struct IgnoredFlag {
  std::string flag, why;
};
// "--bind-to (ranks have cores of their own), --mca (...)"
std::string ignored_flags_text(const std::vector<IgnoredFlag>& flags);

// The setting that an option of another launcher translates to.
struct TranslatedOption {
  std::string key, value;
  std::string flag;  // the option that set it
};

// Options of other launchers, declared so that the reader accepts them; translated after reading.
const std::vector<Option>& compat_reader_options();

// Whether another launcher has a flag of this option too, so that the value tells which one is
// meant. True for an option of another launcher.
bool may_be_foreign(const Option& option);

class CompatLine {
 public:
  // `base`: the settings from the environment and from our own options.
  explicit CompatLine(ConfigTree base) : tree_(std::move(base)) {}

  // Moves the options of other launchers out of `words`. Options that cannot be used are added to
  // words->bad.
  void translate(ParsedOptions* words);

  const std::vector<TranslatedOption>& translated() const { return translated_; }
  const std::vector<IgnoredFlag>& ignored() const { return ignored_; }
  // Words before `fleetrun` in the corrected command, quoted for a shell: "NAME=value ".
  const std::string& prefix() const { return prefix_; }

  // --- for CompatOption::translate: the methods below act on the current option ---

  // The current value of one of our options.
  std::optional<std::string> own_option(const std::string& key) const { return tree_.peek(key); }
  // Whether the line has an option that only this launcher knows.
  bool uses_launcher(const std::string& launcher) const;
  // Whether the line has this flag of another launcher.
  bool has(const std::string& flag) const;
  std::string value_of(const std::string& flag) const;  // "" if the line lacks the flag
  const std::string& flag() const { return current_->flag; }

  // Sets `key`. Rejected if the line already sets another value.
  void set_option(const std::string& key, const std::string& value);
  // Sets `key`, replacing what another launcher's option has set.
  void override_option(const std::string& key, const std::string& value);
  // Records the value of a rejected option, so that the options after it can use it.
  void assume_option(const std::string& key, const std::string& value) {
    tree_.set(key, value, current_->flag);
  }
  // Whether the line itself has this option of ours.
  bool has_own_option(const std::string& key) const { return ours_.contains(key); }
  // Adds a variable to the ranks' environment: "NAME=VALUE", or "NAME" with its local value
  // (--export).
  void export_variable(const std::string& variable);
  void ignore(const std::string& why);
  // Rejects the current option. The corrected line has the options passed to means(), if any.
  void refuse(const std::string& what, const std::string& next);
  void refuse_without_correction(const std::string& what, const std::string& next);
  void prepend(const std::string& words);  // put before the corrected command

 private:
  bool contradicts(const std::string& key, const std::string& value);
  void translate_one(const CompatOption& option, const GivenOption& given);

  ConfigTree tree_;
  std::vector<TranslatedOption> translated_;
  std::vector<IgnoredFlag> ignored_;
  std::vector<std::pair<const CompatOption*, GivenOption>> given_;
  std::map<std::string, std::string>
      flags_;  // our keys that the line sets, and the flag that set each
  std::vector<std::string> exported_;
  std::set<std::string> ours_;  // our keys given directly
  std::string prefix_;
  const GivenOption* current_ = nullptr;
  BadOption problem_;  // the current option; bad if `what` is set
};

}  // namespace fleet
