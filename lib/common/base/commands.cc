#include "base/commands.h"

namespace fleet {
namespace {

using DefineCommand = void (*)(Command&);

Registry<DefineCommand>& definitions() {
  static Registry<DefineCommand> all("command");
  return all;
}

}  // namespace

bool register_command(const char* name, void (*define)(Command&)) {
  definitions().add(name, define);
  return true;
}

const std::vector<Command>& commands() {
  static const std::vector<Command> all = [] {
    std::vector<Command> defined;
    for (const std::string& name : definitions().names()) {
      defined.push_back({.name = name});
      definitions().get(name)(defined.back());
    }
    return defined;
  }();
  return all;
}

const Command* find_command(const std::string& name) {
  if (!definitions().find(name)) return nullptr;  // do not define all of them for a start
  for (const Command& command : commands()) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

}  // namespace fleet
