// Translates options of other launchers on a command line into ours.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "launch/compat/option.h"

namespace fleet {

// An option that was accepted but has no effect, and why.
struct IdleFlag {
  std::string flag, why;
};
// "--bind-to (ranks have cores of their own), --mca (...)"
std::string idle_text(const std::vector<IdleFlag>& flags);

// The setting that an option of another launcher translates to.
struct Translated {
  std::string key, value;
  std::string flag;  // the option that set it
};

// Options of other launchers, declared so that the reader accepts them; translated after reading.
const std::vector<Option>& compat_reader_options();

class CompatLine {
 public:
  // `base`: the settings from the environment and from our own options.
  explicit CompatLine(ConfigTree base) : tree_(std::move(base)) {}

  // Moves the options of other launchers out of `words`. Options that cannot be used are added to
  // words->bad.
  void translate(OptionWords* words);

  const std::vector<Translated>& translated() const { return translated_; }
  const std::vector<IdleFlag>& idle() const { return idle_; }
  // Words before `fleetrun` in the corrected command, quoted for a shell: "NAME=value ".
  const std::string& prefix() const { return prefix_; }

  // --- for CompatOption::translate: the methods below act on the current option ---

  // The current value of one of our options.
  std::optional<std::string> ours(const std::string& key) const { return tree_.peek(key); }
  // Whether the line has an option that only this launcher knows.
  bool speaks(const std::string& launcher) const;
  // Whether the line has this flag of another launcher.
  bool has(const std::string& flag) const;
  std::string value_of(const std::string& flag) const;  // "" if the line lacks the flag
  const std::string& flag() const { return now_->flag; }

  // Sets `key`. Rejected if the line already sets another value.
  void means(const std::string& key, const std::string& value);
  // Sets `key`, replacing what another launcher's option has set.
  void means_instead(const std::string& key, const std::string& value);
  // Records the value of a rejected option, so that the options after it can use it.
  void would_mean(const std::string& key, const std::string& value) {
    tree_.set(key, value, now_->flag);
  }
  // Whether the line itself has this option of ours.
  bool gives(const std::string& key) const { return ours_.contains(key); }
  // Adds a variable to the ranks' environment: "NAME=VALUE", or "NAME" with its local value
  // (--export).
  void exports(const std::string& variable);
  void means_nothing(const std::string& why);
  // Rejects the current option. The corrected line has the options passed to means(), if any.
  void refuse(const std::string& what, const std::string& next);
  void refuse_without_correction(const std::string& what, const std::string& next);
  void write_before(const std::string& words);  // put before the corrected command

 private:
  bool contradicts(const std::string& key, const std::string& value);
  void translate_one(const CompatOption& option, const GivenOption& given);

  ConfigTree tree_;
  std::vector<Translated> translated_;
  std::vector<IdleFlag> idle_;
  std::vector<std::pair<const CompatOption*, GivenOption>> given_;
  std::map<std::string, std::string>
      flags_;  // our keys that the line sets, and the flag that set each
  std::vector<std::string> exported_;
  std::set<std::string> ours_;  // our keys given directly
  std::string prefix_;
  const GivenOption* now_ = nullptr;
  BadOption word_;  // the current option; bad if `what` is set
};

}  // namespace fleet
