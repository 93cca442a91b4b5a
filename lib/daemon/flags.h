// The command lines of fleetd and of fleetrun's sub-commands: a few flags and some words.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace fleet {

struct Flag {
  std::string name;        // "--format"
  bool has_value = true;   // also --name=VALUE
  std::string short_name;  // "-f"; "": none
};

class CommandLine {
 public:
  // kUsage, naming `program` (whose --help it points to), for what is not among `flags`, or more
  // than `most` words that are no flags.
  CommandLine(const std::string& program, const std::vector<std::string>& arguments,
              const std::vector<Flag>& flags, size_t most);
  bool has(const std::string& flag) const { return values_.contains(flag); }
  std::string value(const std::string& flag, const std::string& otherwise = {}) const;
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::map<std::string, std::string> values_;
  std::vector<std::string> words_;
};

}  // namespace fleet
