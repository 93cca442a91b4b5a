// Files and file descriptors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/limits.h"

namespace fleet {

// A system call that failed. what(): "<where>: <what>: <strerror>; <limit_behind()>".
class SystemError : public Error {
 public:
  SystemError(ErrorCode code, const std::string& what, int error, const std::string& where,
              Wanted wanted = Wanted::kOther);
  int error() const { return error_; }  // errno

 private:
  int error_;
};

// Owns a file descriptor.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept;
  ~UniqueFd() { reset(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// Reads `bytes` from `offset` on, or as many as there are; returns their number. kIo naming the
// path.
size_t read_at(const UniqueFd& file, void* to, size_t bytes, uint64_t offset,
               const std::string& path);
// The whole file. kNotFound or kIo, naming the path.
std::string read_file(const std::string& path);
// Writes next to the path, syncs and renames: readers see the old file or the new one, never a part
// of it. kIo.
void write_file_atomically(const std::string& path, std::string_view content);
// mkdir -p. kIo naming the path and the reason.
void make_directories(const std::string& path);
// The error of the last failed system call as a SystemError of kIo.
[[noreturn]] void throw_errno(const std::string& what, const std::string& where = {},
                              Wanted wanted = Wanted::kOther);

}  // namespace fleet
