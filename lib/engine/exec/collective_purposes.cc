#include "exec/collective_purposes.h"

#include <utility>

#include "comm/recorded_communicator.h"
#include "ops/collective.h"

namespace fleet {

CollectivePurpose CollectivePurposes::next(const Op& op) {
  const std::vector<VarId>* contiguous = contiguous_vars_of(op);
  const std::vector<VarId>& sent = contiguous          ? *contiguous
                                   : op.inputs.empty() ? op.outputs
                                                       : op.inputs;
  const Var& first = program_.var(sent.at(0));
  const bool bucket = contiguous && (sent.size() > 1 || first.gradient_of != kNoVar);
  if (!bucket) return {first.name};
  return {"bucket " + std::to_string(buckets_[op.type()]++)};
}

std::unique_ptr<Kernel> with_purpose(std::unique_ptr<Kernel> kernel,
                                     const CollectivePurpose& purpose) {
  struct WithPurpose : Kernel {
    WithPurpose(std::unique_ptr<Kernel> k, const CollectivePurpose& p)
        : kernel(std::move(k)), purpose(p) {}
    void run(Stream& stream) override {
      const CollectivePurposeScope scope(purpose);
      kernel->run(stream);
    }
    const std::unique_ptr<Kernel> kernel;
    const CollectivePurpose purpose;
  };
  return std::make_unique<WithPurpose>(std::move(kernel), purpose);
}

}  // namespace fleet
