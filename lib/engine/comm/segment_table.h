// The segments that the ranks of a group share, and addresses in them.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "comm/control_block.h"
#include "comm/segment.h"

namespace fleet {

// The shared memory that a group can access: its own and that of the groups it was split from.
// Grows with allocate() and lives as long as any communicator of the family. Thread-safe.
class SegmentTable {
 public:
  explicit SegmentTable(std::shared_ptr<const SegmentTable> parent) : parent_(std::move(parent)) {}
  void add(std::shared_ptr<Segment> segment);
  // The shared address, if the memory is in a segment that every rank of the group can access;
  // otherwise {}.
  SharedAddress shared_address_of(const void* data, size_t bytes) const;
  // This process's address of a shared address; never null for that of another rank of the group.
  char* local_address_of(const SharedAddress& address) const;

 private:
  const std::shared_ptr<const SegmentTable> parent_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<Segment>> segments_ FLEET_GUARDED_BY(mutex_);
};

}  // namespace fleet
