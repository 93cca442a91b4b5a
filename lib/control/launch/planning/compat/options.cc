#include <algorithm>

#include "launch/planning/compat/line.h"

namespace fleet {

const std::vector<CompatOption>& compat_options() {
  static const std::vector<CompatOption> all = [] {
    std::vector<CompatOption> together;
    for (const auto group :
         {several_options, paddle_options, torchrun_options, mpirun_options, horovodrun_options,
          srun_options, deepspeed_options, accelerate_options}) {
      std::ranges::move(group().options, std::back_inserter(together));
    }
    return together;
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

std::string compat_help() {
  constexpr size_t kWidth = 98;
  std::string text, line, launcher;
  for (const CompatOption& option : compat_options()) {  // launcher by launcher
    if (option.of != launcher) {
      if (!launcher.empty()) text += line + "\n";
      launcher = option.of;
      line = "  " + launcher + ":";
    }
    for (const std::string& flag : option.flags) {
      if (line.size() + flag.size() >= kWidth) {
        text += line + "\n";
        line = "   ";
      }
      line += " " + flag;
    }
  }
  return text + line + "\n";
}

}  // namespace fleet
