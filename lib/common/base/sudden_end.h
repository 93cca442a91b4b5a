// Files that go with this process, even if it ends at once, without destructors
// (thread_creation.cc).
#pragma once

#include <string>

namespace fleet {

// Removes a file when it is destroyed, or when the process that made it calls remove_own_files().
// Not thread-safe.
class OwnFile {
 public:
  OwnFile() = default;  // no file
  // The file `name` in the folder of this descriptor (AT_FDCWD: `name` is a path), which must stay
  // open as long as this object. Names of more than 255 characters, and files beyond the 32nd, are
  // removed by the destructor only.
  OwnFile(int folder, std::string name);
  OwnFile(OwnFile&& other) noexcept;
  OwnFile& operator=(OwnFile&& other) noexcept;
  ~OwnFile() { remove(); }

  explicit operator bool() const { return !name_.empty(); }
  const std::string& name() const { return name_; }  // "": no file
  void remove();

 private:
  int folder_ = -1, slot_ = -1;
  std::string name_;
};

// Not the files of a parent. Takes no locks and no memory; any thread may call it. The process must
// end right after.
void remove_own_files() noexcept;

}  // namespace fleet
