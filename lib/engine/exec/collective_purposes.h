// The purpose of each collective of a Plan, in records of its calls (observe/collective_log.h).
#pragma once

#include <map>
#include <memory>
#include <string>

#include "exec/kernel.h"
#include "observe/collective_log.h"

namespace fleet {

class CollectivePurposes {
 public:
  explicit CollectivePurposes(const Program& program) : program_(program) {}
  // Call it for the collectives of a Plan in order. "bucket 4" for gradients, and for several
  // tensors in one message: the fourth, counted from 0, among the collectives of that type.
  // Otherwise the variable.
  CollectivePurpose next(const Op& op);

 private:
  const Program& program_;
  std::map<std::string, int> buckets_;  // so far, by type
};

// The same kernel; the calls that it issues have this purpose.
std::unique_ptr<Kernel> with_purpose(std::unique_ptr<Kernel> kernel,
                                     const CollectivePurpose& purpose);

}  // namespace fleet
