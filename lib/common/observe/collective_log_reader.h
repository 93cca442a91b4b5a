// The launcher's end of a rank's collective log.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "observe/collective_log.h"
#include "observe/shared_memory.h"

namespace fleet {

struct CollectiveSnapshot {
  pid_t pid = 0;                // the writing process; 0: none has opened the log
  bool same_pid_names = false;  // it counts processes as this process does (its pid namespace)
  std::vector<CollectiveGroup> groups;
  std::vector<CollectiveRecord> calls;  // the last ones, in the order in which they were issued
};

// Creates the file, which exists in memory only, and reads it, whatever has become of the writer.
class CollectiveLogReader {
 public:
  CollectiveLogReader();  // kIo

  // The path for processes of this user, valid as long as this object lives.
  std::string path() const { return memory_.path(); }
  // Leaves out a call or group that the writer was storing when it was stopped.
  CollectiveSnapshot read() const;

 private:
  SharedMemory memory_;
};

}  // namespace fleet
