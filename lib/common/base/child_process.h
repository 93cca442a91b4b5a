// Starts other programs.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fleet {

// A program to start. It inherits from this process all that is not set here.
struct ChildProgram {
  std::vector<std::string> words;                       // the first is a path, or a name in PATH
  std::string path;                                     // what to execute; "": the first word
  std::optional<std::vector<std::string>> environment;  // "NAME=value" each
  std::string folder;                                   // working directory
  int input = -1, output = -1, errors = -1;             // descriptors for its standard streams
  bool own_group = false;    // a process group of its own: a terminal's Ctrl-C does not reach it
  bool own_session = false;  // a session of its own, without a terminal
  std::optional<sigset_t> blocked_signals;
  bool default_signals = false;  // ignored signals get their default action
};

// Starts it. It inherits no descriptor that is closed on execution. Returns -1 and sets errno if it
// cannot start: ENOENT if the program does not exist.
pid_t start_child(const ChildProgram& program);

// Waits for its end. Returns its exit code, 128 + n for signal n.
int wait_for_child(pid_t pid);
// The exit code for a status of waitpid().
int exit_code_of(int wait_status);

// Runs a program to its end and collects what it writes. Throws kIo if it cannot start.
struct ChildResult {
  int exit_code = 0;
  std::string output, error_output;
};
ChildResult run_child(ChildProgram program);
// The last line of a program's output that is not blank, trimmed; else "".
std::string last_line(std::string_view output);

// For exec(): pointers to the texts, and a null pointer.
std::vector<char*> pointers_to(const std::vector<std::string>& texts);

}  // namespace fleet
