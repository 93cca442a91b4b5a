#include "launch/planning/options.h"

#include <algorithm>

#include "base/terminal_width.h"
#include "base/text.h"
#include "launch/planning/compat/line.h"
#include "launch/planning/secret_names.h"

namespace fleet {

Option paddle(Option option, std::vector<std::string> others) {
  option.environment = {"PADDLE_" + upper_case(option.key)};
  std::ranges::move(others, std::back_inserter(option.environment));
  return option;
}

const OptionGroup& launch_option_group() {
  static const OptionGroup all = [] {
    OptionGroup together;
    for (const auto group :
         {start_options, via_options, supervise_options, log_options, message_options,
          check_options, security_options, role_options, torch_options}) {
      together.include(group());
    }
    return together;
  }();
  return all;
}

const std::vector<Option>& launch_options() { return launch_option_group().options(); }

const Schema& launch_schema() { return launch_option_group().schema(); }

const OptionGroup& inspect_options() {
  static const OptionGroup group = inspect_option_group();
  return group;
}

bool given_by_flag(const Settings& settings, const std::string& key) {
  return settings.given(key) && settings.origin(key).starts_with("-");
}

// Values may be secrets: --export=MY_TOKEN=x.
static std::string export_line(const Settings& settings) {
  std::vector<ConfigValue::Scalar> entries;
  for (const std::string& entry : masked(settings.texts("export"))) entries.emplace_back(entry);
  return "export = " + ConfigValue{entries}.text() + "  (" + settings.origin("export") + ")";
}

std::string print_options(const Settings& settings) {
  std::string text;
  for (const std::string& line : split(settings.print(), '\n')) {
    const std::string key = line.substr(0, line.find(' '));
    bool absent = false;
    for (const Option& option : launch_options()) {
      absent = absent || (option.key == key && option.optional && !settings.given(key));
    }
    if (line.empty()) continue;
    const std::string shown = key == "export" ? export_line(settings) : line;
    text += (absent ? key + " = none  (default)" : shown) + "\n";
  }
  return text;
}

std::string launch_version() { return "fleetrun " FLEET_VERSION; }

std::string launch_help(bool all) {
  std::string text =
      "usage: fleetrun [options] PROGRAM [arguments of the program]\n"
      "Starts distributed training. PROGRAM: a job file (.json), a .py or any program.\n";
  const size_t columns = help_width();
  std::string group;
  for (size_t i = 0; i < launch_options().size(); ++i) {
    const Option& option = launch_options()[i];
    if (option.internal || (!all && !option.common)) continue;
    if (all && option.group != group) text += option.group + ":\n";
    group = option.group;
    text += option_help(option, launch_schema().keys()[i], columns);
  }
  const OptionGroup& inspect = inspect_options();
  if (all) text += inspect.options()[0].group + ":\n";
  for (size_t i = 0; i < inspect.options().size(); ++i) {
    text += option_help(inspect.options()[i], inspect.schema().keys()[i], columns);
  }
  if (all) {
    text +=
        "options of other launchers (translated, ignored with a note, or rejected with\n"
        "the command to use; see docs/how-to/other_launchers.md):\n" +
        compat_help(columns);
  }
  return text + help_tail();
}

std::string help_tail() {
  return "Most options have a PADDLE_* variable. --selected_gpus, --devices mean --gpus.\n"
         "Exit code: that of the first rank to fail, or 128 + its signal.\n"
         "examples:\n"
         "  fleetrun --nproc_per_node=2 config/fashion_mnist.json --set data.batch_size=64\n"
         "  fleetrun --ips=\"10.0.0.1, 10.0.0.2\" --nproc_per_node=8 job.json # on each node\n"
         "  fleetrun job.json --predict photos/   # --export_onnx...: fleet-worker --help\n"
         "  fleetrun --nproc_per_node=2 train.py --lr 0.1\n";
}

}  // namespace fleet
