#include "launch/planning/compat/line.h"

#include <algorithm>

#include "base/text.h"
#include "launch/planning/arguments.h"

namespace fleet {
namespace {

bool has_flag(const CompatOption& option, const std::string& flag) {
  const std::string canonical = canonical_flag(flag);
  return std::any_of(option.flags.begin(), option.flags.end(), [&](const std::string& own) {
    return canonical_flag(own) == canonical || canonical_flag(own) == "-" + canonical;
  });
}

// The entry of another launcher's option; nullptr if the option is ours.
const CompatOption* entry_of(const GivenOption& given) {
  if (!may_be_foreign(*given.option)) return nullptr;
  for (const CompatOption& option : compat_options()) {
    if (option.when && has_flag(option, given.flag) && option.when(given.value)) return &option;
  }
  if (!given.option->foreign) return nullptr;
  return &compat_options()[static_cast<size_t>(std::stoul(given.option->key))];
}

}  // namespace

bool may_be_foreign(const Option& option) {
  // A constant, because to find it out takes longer than to read a line of options.
  constexpr const char* kShared[] = {"export", "host", "log_level", "master", "run_mode", "tee"};
  return option.foreign || std::ranges::find(kShared, option.key) != std::end(kShared);
}

std::string ignored_flags_text(const std::vector<IgnoredFlag>& flags) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < flags.size(); ++i) {
    const bool last_of_reason = i + 1 == flags.size() || flags[i + 1].why != flags[i].why;
    texts.push_back(flags[i].flag + (last_of_reason ? " (" + flags[i].why + ")" : ""));
  }
  return join(texts, ", ");
}

const std::vector<Option>& compat_reader_options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> options;
    for (const CompatOption& compat : compat_options()) {
      options.push_back({.key = std::to_string(options.size()),
                         .aliases = compat.flags,
                         .value = compat.value,
                         .key_is_flag = false,
                         .values = compat.values,
                         .repeats = true,
                         .foreign = true});
    }
    return options;
  }();
  return all;
}

std::set<std::string> launchers_of(const ParsedOptions& words) {
  std::set<std::string> launchers;
  for (const GivenOption& given : words.options) {
    const CompatOption* entry = entry_of(given);
    if (entry && entry->of != kSeveral) launchers.insert(entry->of);
  }
  return launchers;
}

bool CompatLine::uses_launcher(const std::string& launcher) const {
  return std::any_of(given_.begin(), given_.end(),
                     [&](const auto& one) { return one.first->of == launcher; });
}

std::string CompatLine::flag_only_of(const std::string& launcher) const {
  for (const auto& [entry, given] : given_) {
    if (entry->of == launcher && !entry->shared) return given.flag;
  }
  return {};
}

bool CompatLine::has(const std::string& flag) const {
  return std::any_of(given_.begin(), given_.end(),
                     [&](const auto& one) { return has_flag(*one.first, flag); });
}

std::string CompatLine::value_of(const std::string& flag) const {
  const std::vector<std::string> all = values_of(flag);
  return all.empty() ? std::string() : all.back();
}

std::vector<std::string> CompatLine::values_of(const std::string& flag) const {
  std::vector<std::string> values;
  for (const auto& [entry, given] : given_) {
    if (has_flag(*entry, flag)) values.push_back(given.value);
  }
  return values;
}

bool CompatLine::act_for(const std::string& flag) {
  for (size_t i = given_.size(); i-- > 0;) {
    if (!has_flag(*given_[i].first, flag)) continue;
    at_ = i;
    return true;
  }
  return false;
}

void CompatLine::export_variable(const std::string& variable) {
  if (exported_.empty() && has_own_option("export")) {
    exported_ = split(tree_.peek("export").value_or(""), ',');
  }
  const std::string name = variable.substr(0, variable.find('=') + 1);
  std::erase_if(exported_,
                [&](const std::string& other) { return !name.empty() && other.starts_with(name); });
  exported_.push_back(variable);
  flags_.erase("export");
  set_option("export", list_option(exported_));
}

void CompatLine::set_option(const std::string& key, const std::string& value) {
  const auto other = flags_.find(key);
  if (other != flags_.end() && tree_.peek(key) != value) {
    return refuse_without_correction("it contradicts " + other->second, "give only one of them");
  }
  flags_[key] = flag();
  tree_.set(key, value, flag());
  translated_.push_back({key, value, flag()});
  problems_[at_].instead->push_back("--" + key + "=" + value);
}

void CompatLine::override_option(const std::string& key, const std::string& value) {
  if (!has_own_option(key)) flags_.erase(key);
  set_option(key, value);
}

void CompatLine::ignore(const std::string& why) { ignored_.push_back({flag(), why}); }

void CompatLine::refuse(const std::string& what, const std::string& next) {
  const GivenOption& given = given_[at_].second;
  problems_[at_].what = what;
  problems_[at_].where = given.flag + (given.option->is_flag() ? "" : " " + given.value);
  problems_[at_].next = next;
}

void CompatLine::refuse_without_correction(const std::string& what, const std::string& next) {
  refuse(what, next);
  problems_[at_].instead.reset();
}

void CompatLine::prepend(const std::string& words) { prefix_ += words + " "; }

void CompatLine::translate_one(size_t index) {
  at_ = index;
  const auto& [option, given] = given_[index];
  if (!option->ignored.empty()) {
    ignore(option->ignored);
  } else if (option->translate) {
    option->translate(given.value, *this);
  } else {
    // Without it, the line would be another job.
    refuse_without_correction(option->refused,
                              option->next.empty() ? "leave it out" : option->next);
  }
}

void CompatLine::translate(ParsedOptions* words) {
  std::vector<GivenOption> ours;
  for (const GivenOption& given : words->options) {
    if (const CompatOption* entry = entry_of(given)) {
      given_.emplace_back(entry, given);
      problems_.push_back({{}, {}, {}, given.at, given.count, std::vector<std::string>()});
    } else {
      flags_[given.option->key] = given.flag;
      ours_.insert(given.option->key);
      ours.push_back(given);
    }
  }
  words->options = std::move(ours);
  for (const int phase : {0, 1, 2}) {
    for (size_t i = 0; i < given_.size(); ++i) {
      const CompatOption& option = *given_[i].first;
      if ((option.last ? 2 : option.late ? 1 : 0) == phase) translate_one(i);
    }
  }
  std::set<void (*)(CompatLine&)> done;
  for (size_t i = given_.size(); i-- > 0;) {
    const auto together = given_[i].first->together;
    if (!together || !done.insert(together).second) continue;
    at_ = i;
    together(*this);
  }
  write_options_once();
  std::ranges::move(problems_, std::back_inserter(words->bad));
}

void CompatLine::write_options_once() {
  std::set<std::string> written;
  for (size_t i = problems_.size(); i-- > 0;) {
    if (!problems_[i].instead) continue;
    std::erase_if(*problems_[i].instead, [&](const std::string& word) {
      const std::string key = word.substr(2, word.find('=') - 2);
      const bool final = word == "--" + key + "=" + tree_.peek(key).value_or("");
      return !final || !written.insert(key).second;
    });
  }
}

const std::vector<CompatGroup>& compat_groups() {
  static const std::vector<CompatGroup> all = {
      several_options(),   paddle_options(),          older_paddle_options(), torchrun_options(),
      mpirun_options(),    horovodrun_options(),      srun_options(),         pyxis_options(),
      deepspeed_options(), older_deepspeed_options(), accelerate_options()};
  return all;
}

const std::vector<CompatOption>& compat_options() {
  static const std::vector<CompatOption> all = [] {
    std::vector<CompatOption> joined;
    for (const CompatGroup& group : compat_groups()) {
      for (CompatOption option : group.options) {
        option.together = group.together;
        joined.push_back(std::move(option));
      }
    }
    return joined;
  }();
  return all;
}

CompatOption& CompatGroup::add(CompatOption option) {
  option.of = launcher_;
  return options.emplace_back(std::move(option));
}

CompatOption& CompatGroup::ignored(Flags flags, std::string value, std::string why) {
  return add({.flags = std::move(flags), .value = std::move(value), .ignored = std::move(why)});
}

CompatOption& CompatGroup::refused(Flags flags, std::string value, std::string why,
                                   std::string next) {
  return add({.flags = std::move(flags),
              .value = std::move(value),
              .refused = std::move(why),
              .next = std::move(next)});
}

CompatOption& CompatGroup::translated(Flags flags, std::string value,
                                      CompatOption::Translate translate) {
  return add(
      {.flags = std::move(flags), .value = std::move(value), .translate = std::move(translate)});
}

CompatOption& CompatGroup::sets(Flags flags, std::string value, std::string key,
                                std::string prefix) {
  return translated(
      std::move(flags), std::move(value),
      [key = std::move(key), prefix = std::move(prefix)](
          const std::string& text, CompatLine& line) { line.set_option(key, prefix + text); });
}

CompatOption& CompatGroup::variable(std::string flag, std::string value, std::string name) {
  return translated({std::move(flag)}, std::move(value),
                    [name = std::move(name)](const std::string& text, CompatLine& line) {
                      line.export_variable(name + "=" + text);
                    });
}

std::string compat_help(size_t columns) {
  std::string text, line, launcher;
  for (const CompatOption& option : compat_options()) {  // launcher by launcher
    if (option.of != launcher) {
      if (!launcher.empty()) text += line + "\n";
      launcher = option.of;
      line = "  " + launcher + ":";
    }
    for (const std::string& flag : option.flags) {
      if (line.size() + flag.size() >= columns) {
        text += line + "\n";
        line = "   ";
      }
      line += " " + flag;
    }
  }
  return text + line + "\n";
}

}  // namespace fleet
