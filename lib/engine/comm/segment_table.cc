#include "comm/segment_table.h"

namespace fleet {

void SegmentTable::add(std::shared_ptr<Segment> segment) {
  const MutexLock lock(mutex_);
  segments_.push_back(std::move(segment));
}

SharedAddress SegmentTable::shared_address_of(const void* data, size_t bytes) const {
  const auto* begin = static_cast<const char*>(data);
  {
    const MutexLock lock(mutex_);
    for (const auto& segment : segments_) {
      if (begin >= segment->data() && begin + bytes <= segment->data() + segment->bytes()) {
        return {segment->id(), static_cast<uint64_t>(begin - segment->data())};
      }
    }
  }
  return parent_ ? parent_->shared_address_of(data, bytes) : SharedAddress{};
}

char* SegmentTable::local_address_of(const SharedAddress& address) const {
  {
    const MutexLock lock(mutex_);
    for (const auto& segment : segments_) {
      if (segment->id() == address.segment) return segment->data() + address.offset;
    }
  }
  FLEET_CHECK(parent_, "a rank published memory that this rank does not know");
  return parent_->local_address_of(address);
}

}  // namespace fleet
