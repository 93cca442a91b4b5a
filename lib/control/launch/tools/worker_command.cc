#include "launch/tools/worker_command.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "base/file_size_signal.h"
#include "launch/planning/program.h"

namespace fleet {
namespace {

int become_worker(const CommandSyntax& syntax, const std::string& name,
                  const std::vector<std::string>& words) {
  if (!read_command_line(syntax, words)) {
    std::fputs(command_help(syntax).c_str(), stdout);
    return 0;
  }
  std::vector<std::string> command = {default_worker_path(), name};
  command.insert(command.end(), words.begin(), words.end());
  restore_file_size_signal();
  ::execv(command[0].c_str(), pointers_to(command).data());
  throw Error(ErrorCode::kIo, std::string("cannot be started: ") + std::strerror(errno), command[0],
              "install fleet-worker next to fleetrun");
}

}  // namespace

void define_worker_command(CommandSyntax syntax, Command* command) {
  command->syntax = std::move(syntax);
  command->run_unparsed = [syntax = command->syntax,
                           name = command->name](const std::vector<std::string>& words) {
    return become_worker(syntax, name, words);
  };
}

}  // namespace fleet
