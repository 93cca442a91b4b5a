#include "train/device_prefetcher.h"

#include <cstring>

namespace fleet {

DevicePrefetcher::DevicePrefetcher(Executor& executor, Device& device,
                                   const std::vector<VarId>& vars)
    : executor_(executor), device_(device), vars_(vars) {
  if (!device.runs_beside_host()) return;
  size_t bytes = 0;
  for (VarId var : vars_) {
    offsets_.push_back(bytes);
    bytes += (executor.argument(var).bytes() + 255) / 256 * 256;
  }
  for (int i = 0; i < kDepth; ++i) {
    slots_.push_back({.device = device.allocate(bytes), .host = device.allocate_host(bytes)});
    slots_.back().arrived = device.make_event();
    slots_.back().consumed = device.make_event();
  }
  copies_ = device.make_stream("copy");
}

// The stream of the step may still read the slots.
DevicePrefetcher::~DevicePrefetcher() {
  if (slots_.empty()) return;
  try {
    executor_.stream().synchronize();
  } catch (const Error&) {  // was or will be reported where the step is waited for
  }
}

// Before the first copy, which would read memory that the caller frees after an error.
void DevicePrefetcher::check(const std::vector<Feed>& feeds) const {
  FLEET_CHECK(feeds.size() <= vars_.size(), "more feeds than variables");
  for (size_t i = 0; i < feeds.size(); ++i) {
    FLEET_CHECK(feeds[i].var == vars_[i], "feeds in a different order");
    const size_t bytes = executor_.argument(vars_[i]).bytes();
    FLEET_CHECK(feeds[i].data.size() == bytes,
                "prefetch of '" + executor_.program().var(vars_[i]).name +
                    "': " + std::to_string(feeds[i].data.size()) +
                    " bytes were given, the variable has " + std::to_string(bytes));
  }
}

void DevicePrefetcher::feed(const std::vector<Feed>& feeds) {
  if (slots_.empty()) {
    for (const Feed& feed : feeds) executor_.feed(feed.var, feed.data);
    return;
  }
  check(feeds);
  Slot& slot = slots_[next_++ % slots_.size()];
  if (slot.used) copies_->wait(*slot.consumed);
  slot.used = true;
  last_ = &slot;
  const auto at = [&](const Buffer& buffer, size_t i) {
    return static_cast<char*>(buffer.data()) + offsets_[i];
  };
  for (size_t i = 0; i < feeds.size(); ++i) {
    const size_t bytes = feeds[i].data.size();
    const void* from = feeds[i].data.data();
    if (bytes <= kSmall) from = std::memcpy(at(slot.host, i), from, bytes);
    device_.copy(at(slot.device, i), from, bytes, *copies_);
  }
  copies_->record(*slot.arrived);
  Stream& step = executor_.stream();
  step.wait(*slot.arrived);
  for (size_t i = 0; i < feeds.size(); ++i) {
    const Argument to = executor_.argument(vars_[i]);
    device_.copy(to.data, at(slot.device, i), to.bytes(), step);
  }
  step.record(*slot.consumed);
}

void DevicePrefetcher::release() {
  if (last_) last_->arrived->synchronize();
  last_ = nullptr;
}

}  // namespace fleet
