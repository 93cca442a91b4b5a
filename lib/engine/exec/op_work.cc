#include "exec/compute_rates.h"
#include "ops/arithmetic.h"

namespace fleet {

OpWork work_of(const Program& program, const Op& op) {
  OpWork work;
  for (VarId id : op.vars()) {
    const Var& var = program.var(id);
    work.bytes +=
        static_cast<double>(var.shape.elements()) * static_cast<double>(size_of(var.dtype));
  }
  work.flops = operations_of(program, op);
  return work;
}

}  // namespace fleet
