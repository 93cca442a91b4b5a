// Queries that passes use to join operations of a Program.
#pragma once

#include <functional>
#include <vector>

#include "graph/program.h"

namespace fleet {

// The operations that read and write each variable, as indices in Program::ops(); a snapshot from
// the time of construction.
class Uses {
 public:
  explicit Uses(const Program& program);

  // One index per input, in the order of the Program.
  const std::vector<int>& readers(VarId id) const { return readers_[id]; }
  const std::vector<int>& writers(VarId id) const { return writers_[id]; }
  // The last writer; -1: none.
  int writer(VarId id) const { return writers_[id].empty() ? -1 : writers_[id].back(); }

 private:
  std::vector<std::vector<int>> readers_, writers_;  // by variable
};

// Calls append(variable, &ops) behind the operation that writes the variable last, for each
// variable; it may append operations.
void insert_behind_writers(Program& program,
                           const std::function<void(VarId, std::vector<Op>*)>& append);

// Removes the operations whose entries are set.
void remove_ops(Program& program, const std::vector<bool>& removed);

}  // namespace fleet
