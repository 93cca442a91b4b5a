// Starts the real fleetrun in a test, in a folder of its own.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/test_paths.h"

namespace fleet {

// A small rank (rank_helper_main.cc).
inline const std::string kHelper = program_folder() + "/launch_rank_helper";

// A folder that goes away with it, and a mark in the environment of everything started in it.
class JobFolder {
 public:
  JobFolder();
  ~JobFolder();  // also kills what is left, so that a failed test leaves nothing behind
  const std::string& path() const { return path_; }
  const std::string& mark() const { return mark_; }
  std::string marked_environment() const;  // "NAME=mark"
  // The processes that carry the mark: fleetrun, its guardian, ranks, and all they have started.
  std::vector<pid_t> processes() const;
  // Those of them that run under this name (/proc/PID/comm).
  std::vector<pid_t> processes(const std::string& name) const;
  // Waits until none is left; the pids that still are after `seconds`.
  std::vector<pid_t> survivors(double seconds) const;
  std::string read(const std::string& file) const;  // "" if it does not exist
  // Waits for a file that a rank makes; fails the test where it does not come.
  void wait_for(const std::string& file) const;

 private:
  std::string path_, mark_;
};

class Fleetrun {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;
  // Started in the folder, with standard output and error in the file NAME.out of it. An empty
  // value takes a variable out. `terminal`: instead of that for standard output; `errors`: for
  // standard error (a terminal, or a file of the folder).
  Fleetrun(const JobFolder& folder, const std::string& name, std::vector<std::string> arguments,
           const Environment& environment = {}, const std::string& terminal = {},
           const std::string& program = "fleetrun", const std::string& errors = {});
  ~Fleetrun();
  pid_t pid() const { return pid_; }
  void signal(int number) const;
  // As a shell would say it: 128 + n for a signal. Fails the test where it does not end.
  int wait();
  std::string output() const;

 private:
  const JobFolder& folder_;
  std::string name_;
  pid_t pid_ = -1;
  int code_ = -1;
};

}  // namespace fleet
