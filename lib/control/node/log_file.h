// A rank's log file, and the state that the log files of a node share.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/file.h"
#include "node/log_rotation.h"
#include "rendezvous/control_messages.h"

namespace fleet {

// The log files of this node's ranks: their size limit, and one warning if the disk is full.
class LogFolder {
 public:
  LogFolder(const wire::LogSettings& settings, const std::vector<std::string>& paths);

 private:
  friend class LogFile;
  // Makes room for `bytes` more by removing the oldest pieces.
  void make_room(int64_t bytes);
  void on_failure(const std::string& path, const std::string& reason);
  void on_success(const std::string& path, int64_t missing);
  int next_number(const std::string& path, bool restarted) const;

  wire::LogSettings settings_;
  LogQuota bound_;
  std::map<std::string, int> next_numbers_;  // of logs that had pieces at first
  bool warned_ = false, removed_ = false;
};

class LogFile {
 public:
  // Appends to `path`. `restarted`: its content is from an earlier start of this rank in this run
  // and is set aside. A failure is a warning: the job matters more than its log.
  LogFile(LogFolder* folder, std::string path, bool restarted);
  // Begins another file if this one is full. Output that cannot be written is dropped and counted.
  void write(std::string_view output);
  const std::string& path() const { return path_; }

 private:
  void open();
  void set_aside();  // renames it to the next number and opens a new file
  void write_here(std::string_view output);

  LogFolder* folder_;
  std::string path_;
  UniqueFd file_;
  int64_t size_ = 0, missing_ = 0;  // bytes
  int next_number_ = 1;
  bool at_line_start_ = true;
};

}  // namespace fleet
