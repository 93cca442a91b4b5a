// The Python frames of a rank, by py-spy or by gdb's support of Python.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fleet {

// Whether the process is a Python interpreter, by its executable.
bool runs_python(pid_t pid);

struct PythonDebugger {
  enum Kind { kNone, kPySpy, kGdb };
  Kind kind = kNone;
  std::vector<std::string> command;  // prints the stacks; never stops the process for long
  std::string missing;               // kNone: what would show Python frames
};
// py-spy if it is on the PATH; else gdb, if it has the script of this interpreter
// (python3-dbg of Debian).
PythonDebugger find_python_debugger(pid_t pid);

// What a debugger has printed: "train (/data/train.py:12)", innermost first, at most 24, of the
// main thread. If there is none, `missing` says why, in one line.
struct PythonFrames {
  std::vector<std::string> frames;
  std::string missing;
};
PythonFrames python_frames_of(PythonDebugger::Kind kind, const std::string& printed, pid_t pid);

}  // namespace fleet
