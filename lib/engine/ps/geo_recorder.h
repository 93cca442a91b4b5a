// Which rows each trainer of mode geo has not received yet, as Paddle's
// paddle/fluid/distributed/ps/table/depends/geo_recorder.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

namespace fleet::ps {

// For one thread.
class GeoRecorder {
 public:
  explicit GeoRecorder(int trainers) : ids_(static_cast<size_t>(trainers)) {}
  // Some trainer has pushed these.
  void pushed(std::span<const uint64_t> ids);
  // The ids that any trainer has pushed since this one's last call, ascending.
  std::vector<uint64_t> take(int trainer);
  // The trainer has received no rows yet.
  void begin(int trainer);
  // The trainer takes no more.
  void leave(int trainer);

 private:
  struct Pending {
    bool left = false;
    std::unordered_set<uint64_t> ids = {};
  };
  std::vector<Pending> ids_;  // by trainer
};

}  // namespace fleet::ps
