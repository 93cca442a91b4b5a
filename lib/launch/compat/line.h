// A command line in which options of other launchers are put into ours.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/command_line.h"
#include "launch/compat/option.h"

namespace fleet {

// An option that was accepted and has no meaning here.
struct IdleFlag {
  std::string flag, why;
};
// "--bind-to (ranks have cores of their own), --mca (...)"
std::string idle_text(const std::vector<IdleFlag>& flags);

// What an option of another launcher says in terms of ours.
struct Translated {
  std::string key, value;
  std::string flag;  // that says so
};

// For the reader: known to it, to be translated afterwards.
const std::vector<Option>& compat_reader_options();

class CompatLine {
 public:
  // `base`: what the environment and the options of ours say.
  explicit CompatLine(ConfigTree base) : tree_(std::move(base)) {}

  // Takes the options of other launchers out of `words`, in whose `bad` it puts those that cannot
  // be used.
  void translate(OptionWords* words);

  const std::vector<Translated>& translated() const { return translated_; }
  const std::vector<IdleFlag>& idle() const { return idle_; }
  // Words before `fleetrun` in the corrected command, as a shell wants them: "NAME=value ".
  const std::string& prefix() const { return prefix_; }

  // --- for CompatOption::translate, about the option at hand ---

  // What an option of ours is by now.
  std::optional<std::string> ours(const std::string& key) const { return tree_.peek(key); }
  // Whether the line has an option that only this launcher has.
  bool speaks(const std::string& launcher) const;
  // Whether the line has this flag of another launcher.
  bool has(const std::string& flag) const;
  std::string value_of(const std::string& flag) const;  // "": the line has it not
  const std::string& flag() const { return now_->flag; }

  // It says this. Refused where the line says otherwise already.
  void means(const std::string& key, const std::string& value);
  // It says this in place of what another launcher's option has said.
  void means_instead(const std::string& key, const std::string& value);
  // It would say this, were it not refused: the options after it know.
  void would_mean(const std::string& key, const std::string& value) {
    tree_.set(key, value, now_->flag);
  }
  // Whether an option of ours stands on the line.
  bool gives(const std::string& key) const { return ours_.contains(key); }
  // A variable of the ranks' environment: "NAME=VALUE", or "NAME" as it is here (--export).
  void exports(const std::string& variable);
  void means_nothing(const std::string& why);
  // It cannot be used. In the corrected line stand the options it `means`, if any.
  void refuse(const std::string& what, const std::string& next);
  void refuse_without_correction(const std::string& what, const std::string& next);
  void write_before(const std::string& words);  // in front of the corrected command

 private:
  bool contradicts(const std::string& key, const std::string& value);
  void translate_one(const CompatOption& option, const GivenOption& given);

  ConfigTree tree_;
  std::vector<Translated> translated_;
  std::vector<IdleFlag> idle_;
  std::vector<std::pair<const CompatOption*, GivenOption>> given_;
  std::map<std::string, std::string> flags_;  // of ours that the line says: key, flag
  std::vector<std::string> exported_;
  std::set<std::string> ours_;  // those that it gives itself
  std::string prefix_;
  const GivenOption* now_ = nullptr;
  BadOption word_;  // the option at hand; bad where it says `what`
};

}  // namespace fleet
