// Abbreviated flags of launchers that are written in Python: "--nproc 2" of torchrun.
#include <algorithm>

#include "launch/planning/compat/line.h"
#include "store/worker_options.h"

namespace fleet {
namespace {

// The long flags of a launcher, each list those of one option.
std::vector<CompatGroup::Flags> options_of(const CompatGroup& group) {
  std::vector<CompatGroup::Flags> all = group.others;
  for (const CompatOption& option : group.options) all.push_back(option.flags);
  return all;
}

// The flag that begins with `start`; "" if no option, or more than one, has such a flag.
std::string completed(const CompatGroup& group, const std::string& start) {
  std::string found;
  for (const CompatGroup::Flags& flags : options_of(group)) {
    const auto one = std::ranges::find_if(flags, [&](const std::string& flag) {
      return flag.starts_with("--") && canonical_flag(flag).starts_with(start);
    });
    if (one == flags.end()) continue;
    if (!found.empty() && found != *one) return {};  // our own flag may occur twice
    found = *one;
  }
  return found;
}

// The flag that all these launchers mean; "" if none has it, or they mean several options.
std::string meant(const std::vector<Option>& known, const std::string& flag,
                  const std::set<std::string>& launchers) {
  std::string meaning;
  for (const CompatGroup& group : compat_groups()) {
    if (!group.abbreviates || !launchers.contains(group.launcher())) continue;
    const std::string full = completed(group, canonical_flag(flag));
    if (full.empty()) continue;
    if (!meaning.empty() && find_flag(known, full) != find_flag(known, meaning)) return {};
    meaning = full;
  }
  return meaning;
}

std::set<std::string> abbreviating_launchers() {
  std::set<std::string> all;
  for (const CompatGroup& group : compat_groups()) {
    if (group.abbreviates) all.insert(group.launcher());
  }
  return all;
}

}  // namespace

bool expand_abbreviations(const std::vector<Option>& known, const ParsedOptions& words,
                          bool torchrun, std::vector<std::string>* arguments) {
  const std::set<std::string> of_line =
      torchrun ? std::set<std::string>{"torchrun"} : launchers_of(words);
  const std::set<std::string> everyone = abbreviating_launchers();
  const bool known_launcher =
      std::ranges::any_of(of_line, [&](const std::string& one) { return everyone.contains(one); });
  bool changed = false;
  for (const BadOption& bad : words.bad) {
    if (bad.at >= arguments->size()) continue;
    std::string& word = (*arguments)[bad.at];
    const size_t equals = word.find('=');
    const std::string flag = word.substr(0, equals);
    if (flag.size() < 3 || !flag.starts_with("--") || find_flag(known, flag)) continue;
    if (find_flag(worker_options().options(), flag)) continue;  // it comes before the job file
    const std::string full = meant(known, flag, known_launcher ? of_line : everyone);
    if (full.empty()) continue;
    word = full + (equals == std::string::npos ? "" : word.substr(equals));
    changed = true;
  }
  return changed;
}

}  // namespace fleet
