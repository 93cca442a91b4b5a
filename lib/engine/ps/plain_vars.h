// The variables of a trainer's executor, in plain layout.
#pragma once

#include <cstddef>
#include <string>

#include "base/error.h"
#include "exec/executor.h"

namespace fleet::ps {

inline VarId find_var(const Program& program, const std::string& name) {
  const VarId id = program.find(name);
  FLEET_CHECK(id != kNoVar, "the executor's Program has no '" + name + "'");
  return id;
}

inline size_t plain_bytes(const Executor& executor, VarId id) {
  const Var& var = executor.program().var(id);
  return static_cast<size_t>(var.shape.elements()) * size_of(var.dtype);
}

}  // namespace fleet::ps
