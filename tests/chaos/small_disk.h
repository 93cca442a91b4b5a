// A disk of its own that can be full: a small file system in memory.
#pragma once

#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"

namespace fleet::chaos {

class SmallDisk {
 public:
  // At this path, which is made. Throws fleet::Error where nothing can be mounted.
  explicit SmallDisk(std::string path) : path_(std::move(path)) {
    std::filesystem::create_directories(path_);
    if (::mount("none", path_.c_str(), "tmpfs", 0, "size=1m") != 0) {
      throw Error(ErrorCode::kUnsupported, "no file system can be mounted", path_);
    }
  }
  ~SmallDisk() { ::umount2(path_.c_str(), MNT_DETACH); }
  SmallDisk(const SmallDisk&) = delete;
  // No byte is left.
  void fill() const {
    for (const size_t size : {size_t{4096}, size_t{1}}) {
      std::ofstream file(path_ + "/filling." + std::to_string(size), std::ios::binary);
      const std::string block(size, 'x');
      while (file << block << std::flush) {
      }
    }
  }

 private:
  std::string path_;
};

}  // namespace fleet::chaos
