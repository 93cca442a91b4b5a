// Passes: rewrites of a Program before it is planned. One file each, registered under the name
// users know it by.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/registry.h"
#include "graph/program.h"

namespace fleet {

// The rank that a Program is for, and what it computes on.
struct PassContext {
  int rank = 0;   // in the job; each rank's Program may be another
  int ranks = 1;  // of the job
  int nodes = 1;  // that they are on
  // The ranks that train the same parameters on other samples, this one among them; empty: all.
  std::vector<int> data_parallel;
  // Low floating types the backend computes in, the preferred first; none: why, in a clause.
  std::vector<DType> low_types;
  std::string no_low_type;
  std::string backend = "cpu";                   // the program is for
  std::vector<std::string> backend_passes = {};  // that only this backend has kernels for
  std::string optimizer = "momentum";            // that the job trains with
  // The loss is scaled in bfloat16 too, where it need not be: for tests on the CPU.
  bool scale_low_loss = false;

  // Whether the backend has the kernels of a pass that not every backend has.
  bool backend_has(const std::string& pass) const;
  std::vector<int> data_parallel_ranks() const;
  int data_parallel_degree() const { return static_cast<int>(data_parallel_ranks().size()); }
};

// Operations of stream 0 compute; collectives run beside them from this stream on.
inline constexpr int kCommunicationStream = 1;

class Pass {
 public:
  virtual ~Pass() = default;
  // Rewrites; returns whether it changed anything. Says in the log what it did, in the words users
  // look for.
  virtual bool run(Program& program, const PassContext& context) = 0;
};

struct PassDef {
  std::string help;    // one line
  Attributes options;  // every option there is, with its default
  // Called with every option set.
  std::unique_ptr<Pass> (*create)(const Attributes& options) = nullptr;
};

Registry<PassDef>& pass_registry();
bool register_pass(const std::string& name, void (*define)(PassDef&));

// Makes the pass of this name, runs it and verifies the program where it changed something. An
// option the pass does not have, or of another type, is kInternal.
bool run_pass(const std::string& name, Program& program, const PassContext& context,
              Attributes options = {});

// FLEET_PASS(fuse_bn_act) { def.help = ...; def.create = ...; } in lib/passes/fuse_bn_act.cc.
#define FLEET_PASS(name)                                      \
  static void define_pass_##name(::fleet::PassDef& def);      \
  [[maybe_unused]] static const bool registered_pass_##name = \
      ::fleet::register_pass(#name, define_pass_##name);      \
  static void define_pass_##name(::fleet::PassDef& def)

}  // namespace fleet
