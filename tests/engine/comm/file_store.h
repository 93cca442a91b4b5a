// A Store in a folder, for the processes of a test or benchmark.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "store/store.h"

namespace fleet {

class FileStore : public Store {
 public:
  explicit FileStore(std::string folder) : folder_(std::move(folder)) {}

  void set(const std::string& key, std::string_view value) override {
    const std::string path = path_of(key);
    const std::string aside = path + "." + std::to_string(::getpid());
    {
      UniqueFd fd(::open(aside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
      if (!fd ||
          ::write(fd.get(), value.data(), value.size()) != static_cast<ssize_t>(value.size())) {
        throw_errno("cannot write", aside);
      }
    }
    if (::rename(aside.c_str(), path.c_str()) != 0) throw_errno("cannot rename", path);
  }
  std::string get(const std::string& key, std::chrono::milliseconds timeout) override {
    const auto deadline = std::chrono::steady_clock::now() + timeout;
    while (::access(path_of(key).c_str(), R_OK) != 0) {
      if (std::chrono::steady_clock::now() >= deadline) {
        throw Error(ErrorCode::kTimeout, "nobody set the key", key);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return read_file(path_of(key));
  }
  int64_t add(const std::string& key, int64_t amount) override {
    UniqueFd lock(::open(path_of("lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (!lock || ::flock(lock.get(), LOCK_EX) != 0) throw_errno("cannot lock", folder_);
    const bool is_new = ::access(path_of(key).c_str(), R_OK) != 0;
    const int64_t sum = (is_new ? 0 : std::stoll(read_file(path_of(key)))) + amount;
    set(key, std::to_string(sum));
    return sum;
  }

 private:
  std::string path_of(std::string key) const {
    std::replace(key.begin(), key.end(), '/', '%');
    return folder_ + "/" + key;
  }
  const std::string folder_;
};

}  // namespace fleet
