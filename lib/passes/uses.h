// What passes that join operations ask of a Program.
#pragma once

#include <vector>

#include "graph/program.h"

namespace fleet {

// Which operations read and write each variable, by their places in Program::ops(): as it was when
// this was made.
class Uses {
 public:
  explicit Uses(const Program& program);

  // A place for each input, in the order of the Program.
  const std::vector<int>& readers(VarId id) const { return readers_[id]; }
  const std::vector<int>& writers(VarId id) const { return writers_[id]; }
  // The last one; -1: none.
  int writer(VarId id) const { return writers_[id].empty() ? -1 : writers_[id].back(); }

 private:
  std::vector<std::vector<int>> readers_, writers_;  // by variable
};

// Removes the operations at the places that are set.
void remove_ops(Program& program, const std::vector<bool>& removed);

}  // namespace fleet
