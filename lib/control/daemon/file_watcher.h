// Reports file changes.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "transport/event_loop.h"
#include "transport/loop_descriptor.h"

namespace fleet {

// inotify in a loop. Not thread safe.
class FileWatcher {
 public:
  explicit FileWatcher(EventLoop& loop);
  // Calls `changed` with the name of each file that is written or renamed into this folder, or with
  // "" if the kernel dropped events. The folder must exist. Throws kIo. Returns an id for forget().
  int watch_folder(const std::string& folder, std::function<void(const std::string&)> changed);
  // Calls `changed` whenever the file of this name is written or replaced. Its folder must exist.
  // Throws kIo.
  int watch_file(const std::string& path, std::function<void()> changed);
  void unwatch(int watch);

 private:
  int add(const std::string& path, uint32_t mask, std::function<void(const std::string&)> changed);
  void wait();
  void read();

  LoopDescriptor inotify_;
  int last_ = 0;
  struct Watch {
    int descriptor;  // the kernel has one per folder
    std::function<void(const std::string&)> changed;
  };
  std::map<int, Watch> watches_;
};

}  // namespace fleet
