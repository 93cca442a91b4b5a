#include "observe/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <new>
#include <utility>

#include "base/proc_number.h"

namespace fleet {

SharedMemory::SharedMemory(UniqueFd file, size_t bytes) : file_(std::move(file)) {
  const int flags = file_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file_.get(), 0);
  if (memory != MAP_FAILED) memory_ = {memory, Unmap{bytes}};
}

void SharedMemory::Unmap::operator()(void* memory) const { ::munmap(memory, bytes); }

SharedMemory SharedMemory::create(const std::string& of, size_t bytes, uint64_t magic) {
  UniqueFd file(::memfd_create(("fleet-" + of).c_str(), MFD_CLOEXEC));
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) {
    throw_errno("cannot create the in-memory file of a rank's " + of);
  }
  SharedMemory created(std::move(file), bytes);
  if (!created) throw_errno("cannot map the file of a rank's " + of);
  created.as<std::atomic<uint64_t>>() = magic;
  return created;
}

SharedMemory SharedMemory::open(const std::string& path, size_t bytes, uint64_t magic) {
  UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file || ::lseek(file.get(), 0, SEEK_END) < static_cast<off_t>(bytes)) return {};
  SharedMemory opened(std::move(file), bytes);
  opened.file_.reset();
  if (opened && opened.as<std::atomic<uint64_t>>() != magic) return {};
  return opened;
}

SharedMemory SharedMemory::unshared(size_t bytes) {
  SharedMemory own({}, bytes);
  if (!own) throw std::bad_alloc();
  return own;
}

std::string SharedMemory::path() const {
  return "/proc/" + std::to_string(own_proc_number()) + "/fd/" + std::to_string(file_.get());
}

}  // namespace fleet
