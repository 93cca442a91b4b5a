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
  bool last = false;      // translated after all others
  bool shared = false;    // another launcher has it too, and means the same
  // Set by its group: CompatGroup::together.
  void (*together)(CompatLine& line) = nullptr;
  // Set if the flag is also one of ours or of an earlier entry: whether a value selects this entry.
  std::function<bool(const std::string& value)> when = {};
};

inline constexpr char kSeveral[] = "several";

// All entries; the first entry with a flag wins.
const std::vector<CompatOption>& compat_options();

// Writes out the abbreviated flags of a line that could not be read whole: launchers written in
// Python take every beginning of a long flag that no other of theirs has. `words`: the line as
// read. A flag that has several meanings stays, unless other options of the line decide. Returns
// whether a word of `arguments` has changed. `torchrun`: the line is torchrun's.
bool expand_abbreviations(const std::vector<Option>& known, const ParsedOptions& words,
                          bool torchrun, std::vector<std::string>* arguments);

// Help lines that list the flags of each launcher.
std::string compat_help(size_t columns);

// The options of one launcher. Each call adds one, and returns it: set its other members there.
class CompatGroup {
 public:
  using Flags = std::vector<std::string>;
  explicit CompatGroup(std::string launcher) : launcher_(std::move(launcher)) {}
  const std::string& launcher() const { return launcher_; }

  CompatOption& ignored(Flags flags, std::string value, std::string why);
  CompatOption& refused(Flags flags, std::string value, std::string why, std::string next = {});
  CompatOption& translated(Flags flags, std::string value, CompatOption::Translate translate);
  // Sets our option `key` to `prefix` and the value.
  CompatOption& sets(Flags flags, std::string value, std::string key, std::string prefix = {});
  // Exports the value to the ranks as the environment variable `name`.
  CompatOption& variable(std::string flag, std::string value, std::string name);
  // An option of this launcher that is declared elsewhere: fleetrun's own, or shared.
  void also(Flags flags) { others.push_back(std::move(flags)); }

  std::vector<CompatOption> options;
  std::vector<Flags> others;
  bool abbreviates = false;  // takes unique beginnings of long flags
  // Translates the options that depend on one another: called once for a line that has options of
  // this group, after all of them are translated. Acts on the last one, see CompatLine::act_for().
  void (*together)(CompatLine& line) = nullptr;

 private:
  CompatOption& add(CompatOption option);
  std::string launcher_;
};

// All launchers, in the order in which their entries count.
const std::vector<CompatGroup>& compat_groups();

// Options by launcher. A new launcher is one file and its line in compat_groups().
CompatGroup several_options();  // flags shared by several launchers, with the same meaning or not
CompatGroup paddle_options();
CompatGroup older_paddle_options();
CompatGroup torchrun_options();
CompatGroup mpirun_options();                // Open MPI's, MPICH's and Intel MPI's
void add_hydra_options(CompatGroup* group);  // the part of it that Open MPI lacks
CompatGroup horovodrun_options();
CompatGroup srun_options();
CompatGroup pyxis_options();
CompatGroup deepspeed_options();
CompatGroup older_deepspeed_options();
CompatGroup accelerate_options();

// The launchers of which the line has an option that no other one has.
std::set<std::string> launchers_of(const ParsedOptions& words);

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
  // Other notes for the user about the translation: one line each.
  const std::vector<std::string>& notes() const { return notes_; }
  // Words before `fleetrun` in the corrected command, quoted for a shell: "NAME=value ".
  const std::string& prefix() const { return prefix_; }

  // --- for CompatOption::translate: the methods below act on the current option ---

  // The current value of one of our options.
  std::optional<std::string> own_option(const std::string& key) const { return tree_.peek(key); }
  // Whether the line has an option that only this launcher knows.
  bool uses_launcher(const std::string& launcher) const;
  // The first flag of the line that only this launcher has; "" if the line has no such flag.
  std::string flag_only_of(const std::string& launcher) const;
  // Whether the line has this flag of another launcher.
  bool has(const std::string& flag) const;
  std::string value_of(const std::string& flag) const;  // the last one; "" if the line lacks it
  std::vector<std::string> values_of(const std::string& flag) const;  // one per occurrence
  const std::string& flag() const { return given_[at_].second.flag; }
  // Makes the option with this flag the current one. False if the line lacks it.
  bool act_for(const std::string& flag);

  // Sets `key`. Rejected if the line already sets another value.
  void set_option(const std::string& key, const std::string& value);
  // Sets `key`, replacing what another launcher's option has set.
  void override_option(const std::string& key, const std::string& value);
  // Records the value of a rejected option, so that the options after it can use it.
  void assume_option(const std::string& key, const std::string& value) {
    tree_.set(key, value, flag());
  }
  // Whether the line itself has this fleetrun option.
  bool has_own_option(const std::string& key) const { return ours_.contains(key); }
  // Adds a variable to the ranks' environment: "NAME=VALUE", or "NAME" with its local value
  // (--export).
  void export_variable(const std::string& variable);
  void ignore(const std::string& why);
  void note(const std::string& text) { notes_.push_back(flag() + ": " + text); }
  // Rejects the current option. The corrected line contains the options passed to means(), if any.
  void refuse(const std::string& what, const std::string& next);
  void refuse_without_correction(const std::string& what, const std::string& next);
  void prepend(const std::string& words);  // put before the corrected command

 private:
  void translate_one(size_t index);
  // In the corrected line, an option that several others set stands once, with its last value.
  void write_options_once();

  ConfigTree tree_;
  std::vector<TranslatedOption> translated_;
  std::vector<IgnoredFlag> ignored_;
  std::vector<std::string> notes_;
  std::vector<std::pair<const CompatOption*, GivenOption>> given_;
  std::vector<BadOption> problems_;  // one for each of given_; bad if `what` is set
  size_t at_ = 0;                    // the current option: its index in given_
  std::map<std::string, std::string>
      flags_;  // our keys that the line sets, and the flag that set each
  std::vector<std::string> exported_;
  std::set<std::string> ours_;  // our keys given directly
  std::string prefix_;
};

// "host1:4,host2:4" or "host1,host2" becomes --ips, started from here over ssh as mpirun does. A
// list of only this machine becomes --nproc_per_node.
void translate_hosts(const std::string& value, CompatLine& line);
// Like translate_hosts(), for a host file.
void translate_host_file(const std::string& path, CompatLine& line);
// The total number of ranks of the job (mpirun -np). Call it after the nodes are known.
void translate_total_ranks(const std::string& value, CompatLine& line);
// "NAME" or "NAME=VALUE" for the ranks' environment. Call it after the nodes are known.
void translate_variable(const std::string& value, CompatLine& line);

// Whether the line gives the total number of ranks: "-np", "--ntasks", ...
bool gives_total_ranks(const CompatLine& line);

// Whether the name or address is this host's.
bool is_this_host(const std::string& address);

// Lets the ranks see only these GPUs of their node, as launchers of PyTorch programs do: those take
// the GPU of their LOCAL_RANK.
void show_only_gpus(const std::string& gpus, CompatLine& line);

// The port at which ssh reaches the nodes. Call it after the nodes are known.
void pass_to_ssh(const std::string& port, CompatLine& line);

// Rejects "-n 1 a : -n 2 b", which starts several programs with mpirun and srun. `program`: the
// words of the program.
void refuse_several_programs(const std::vector<std::string>& program, const CompatLine& line);

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
void translate_cores_per_rank(const std::string& value, CompatLine& line);

}  // namespace fleet
