#include "base/sudden_end.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace fleet {
namespace {

constexpr pid_t kFree = 0, kBeingFilled = -1;

struct Slot {
  std::atomic<pid_t> owner{kFree};
  int folder = -1;
  char name[256] = {};
};

constinit std::array<Slot, 32> own_files{};

// -1 if it does not fit.
int keep(int folder, const std::string& name) {
  if (name.size() >= sizeof Slot::name) return -1;
  for (size_t i = 0; i < own_files.size(); ++i) {
    Slot& slot = own_files[i];
    pid_t free = kFree;
    if (!slot.owner.compare_exchange_strong(free, kBeingFilled)) continue;
    slot.folder = folder;
    std::memcpy(slot.name, name.c_str(), name.size() + 1);
    slot.owner.store(::getpid());
    return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

OwnFile::OwnFile(int folder, std::string name)
    : folder_(folder), slot_(keep(folder, name)), name_(std::move(name)) {}

OwnFile::OwnFile(OwnFile&& other) noexcept
    : folder_(other.folder_),
      slot_(std::exchange(other.slot_, -1)),
      name_(std::exchange(other.name_, {})) {}

OwnFile& OwnFile::operator=(OwnFile&& other) noexcept {
  if (this == &other) return *this;
  remove();
  folder_ = other.folder_;
  slot_ = std::exchange(other.slot_, -1);
  name_ = std::exchange(other.name_, {});
  return *this;
}

void OwnFile::remove() {
  if (name_.empty()) return;
  ::unlinkat(folder_, name_.c_str(), 0);
  if (slot_ >= 0) own_files[static_cast<size_t>(slot_)].owner.store(kFree);
  slot_ = -1;
  name_.clear();
}

void remove_own_files() noexcept {
  const pid_t self = ::getpid();
  for (Slot& slot : own_files) {
    if (slot.owner.load() == self) ::unlinkat(slot.folder, slot.name, 0);
  }
}

}  // namespace fleet
