#include "launch/planning/options.h"

#include "pages/pages.h"

namespace fleet {

bool takes_files(const Command& command) {
  const std::string& words = command.syntax.words;
  return words.starts_with("FILE") || words.starts_with("FOLDER");
}

const OptionGroup& start_and_inspect_options() {
  static const OptionGroup both = [] {
    OptionGroup group = launch_option_group();
    group.include(inspect_options());
    return group;
  }();
  return both;
}

}  // namespace fleet
