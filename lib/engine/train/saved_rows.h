// The rows of tables that a checkpoint has, for predictions without parameter servers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "graph/program.h"
#include "train/job.h"

namespace fleet {

// Not thread-safe. Tables are counted as served_tables() of the Program lists them.
class SavedRows {
 public:
  virtual ~SavedRows() = default;
  // Ids that read() will get. Call it for all of them before load().
  virtual void want(int table, std::span<const uint64_t> ids) = 0;
  // Reads their rows, and keeps no others. Errors name the file or the key.
  virtual void load() = 0;
  // rows: [ids.size(), dim]. An id without a row has the one that it would begin with in training.
  virtual void read(int table, std::span<const uint64_t> ids, std::span<float> rows) = 0;
  // After load(): a line for each table that lacks some of the ids.
  virtual std::vector<std::string> missing_lines() const = 0;
};

// checkpoint: its folder.
using OpenSavedRows = std::function<std::unique_ptr<SavedRows>(
    const Job& job, const Program& program, const std::string& checkpoint)>;

}  // namespace fleet
