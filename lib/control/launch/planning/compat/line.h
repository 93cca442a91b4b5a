// Translates options of other launchers on a command line into ours.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/command_line.h"

namespace fleet {

class CompatLine;

// An option of another launcher (mpirun, srun, deepspeed, ...) that is not a setting of fleetrun.
// Each is one call with everything about it, in the file of its launcher. An option that is only
// another name for one of ours is an alias in planning/options instead.
struct CompatOption {
  using Translate = std::function<void(const std::string& value, CompatLine& line)>;

  std::string of = {};                  // its launcher: "mpirun"; kSeveral if several have it
  std::vector<std::string> flags = {};  // as written: "-np", "--bind-to"
  std::string value = {};               // name of the value in messages; empty for a flag

  // The action, one of these:
  std::string ignored = {};  // accepted without effect; the reason, which is printed once
  std::string refused = {};  // rejected; the reason
  Translate translate = {};

  std::string next = {};  // with `refused`: the advice; empty: "leave it out"
  int values = 1;         // words of the value: two of "--mca KEY VALUE"
  bool late = false;      // translated after the options that name nodes
  // Set if the flag is also one of ours or of an earlier entry: whether a value selects this entry.
  std::function<bool(const std::string& value)> when = {};
};

inline constexpr char kSeveral[] = "several";

// All entries; the first entry with a flag wins.
const std::vector<CompatOption>& compat_options();

// Help lines that list the flags of each launcher.
std::string compat_help();

// The options of one launcher. Each call adds one, and returns it: set its other members there.
class CompatGroup {
 public:
  using Flags = std::vector<std::string>;
  explicit CompatGroup(std::string launcher) : launcher_(std::move(launcher)) {}

  CompatOption& ignored(Flags flags, std::string value, std::string why);
  CompatOption& refused(Flags flags, std::string value, std::string why, std::string next = {});
  CompatOption& translated(Flags flags, std::string value, CompatOption::Translate translate);
  // Sets our option `key` to `prefix` and the value.
  CompatOption& sets(Flags flags, std::string value, std::string key, std::string prefix = {});
  // Exports the value to the ranks as the environment variable `name`.
  CompatOption& variable(std::string flag, std::string value, std::string name);

  std::vector<CompatOption> options;

 private:
  CompatOption& add(CompatOption option);
  std::string launcher_;
};

// Options by launcher. A new launcher is one file and its line in options.cc.
CompatGroup several_options();  // flags shared by several launchers, with the same meaning or not
CompatGroup paddle_options();
CompatGroup torchrun_options();
CompatGroup mpirun_options();  // Open MPI's, MPICH's and Intel MPI's
CompatGroup horovodrun_options();
CompatGroup srun_options();
CompatGroup deepspeed_options();
CompatGroup accelerate_options();

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
  // Whether the line itself has this fleetrun option.
  bool has_own_option(const std::string& key) const { return ours_.contains(key); }
  // Adds a variable to the ranks' environment: "NAME=VALUE", or "NAME" with its local value
  // (--export).
  void export_variable(const std::string& variable);
  void ignore(const std::string& why);
  // Rejects the current option. The corrected line contains the options passed to means(), if any.
  void refuse(const std::string& what, const std::string& next);
  void refuse_without_correction(const std::string& what, const std::string& next);
  void prepend(const std::string& words);  // put before the corrected command

 private:
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

// "host1:4,host2:4" or "host1,host2" becomes --ips, started from here over ssh as mpirun does. A
// list of only this machine becomes --nproc_per_node.
void translate_hosts(const std::string& value, CompatLine& line);
// The same for a host file.
void translate_host_file(const std::string& path, CompatLine& line);
// The total number of ranks of the job (mpirun -np). Call it after the nodes are known.
void translate_total_ranks(const std::string& value, CompatLine& line);
// "NAME" or "NAME=VALUE" for the ranks' environment. Call it after the nodes are known.
void translate_variable(const std::string& value, CompatLine& line);

// Whether the line gives the total number of ranks: "-np", "--ntasks", ...
bool gives_total_ranks(const CompatLine& line);

// Adds --via=ssh, unless the line shows that fleetrun runs on each node.
void use_ssh(CompatLine& line);
// Moves the user of "user@host" from --ips to the options of ssh.
void take_ssh_user(CompatLine& line);

// Passes an option on to srun: through --via=slurm inside an allocation. Outside one it is
// rejected, and the corrected line starts fleetrun with srun.
void pass_to_srun(const std::string& word, CompatLine& line);
void translate_srun_nodes(const std::string& value, CompatLine& line);
// Without a number of nodes, srun's total and its count for a node give it. False if they do not.
bool translate_srun_counts(int total, CompatLine& line);

}  // namespace fleet
