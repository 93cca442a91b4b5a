// Which checkpoints have whole tables, and which only the changes since such a one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace fleet::ps {

// The snapshot that another one has only the changes to.
struct DeltaBase {
  std::string checkpoint;  // its folder
  Json versions;           // version of each table, by name
};

// Not thread-safe.
class TableDeltas {
 public:
  // count: snapshots of changes between two whole ones; 0: none.
  explicit TableDeltas(int64_t count) : count_(count) {}

  // The base for this checkpoint's snapshot; nullopt: write a whole one. That is also the answer if
  // the base is gone, or was not completed. checkpoint: its folder, which may still have the ending
  // ".part".
  std::optional<DeltaBase> base_for(const std::string& checkpoint) const;
  // The snapshot of this checkpoint is written, from parts (TableCut::write()).
  void written(const std::string& checkpoint, const std::vector<Json>& parts);

 private:
  const int64_t count_;
  std::optional<DeltaBase> base_;
  int64_t since_base_ = 0;  // snapshots of changes
};

}  // namespace fleet::ps
