// Passes rewrite a Program before it is planned. Each has its own file and is registered under its
// user-visible name.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "base/registry.h"
#include "graph/program.h"

namespace fleet {

// The number of operations before and after a pass or another step of the build.
struct PassStep {
  std::string name;
  int before = 0, after = 0;
};

// The rank that a Program is for, and the hardware it computes on.
struct PassContext {
  int rank = 0;     // in the job; each rank may have a different Program
  int ranks = 1;    // number of ranks in the job
  int nodes = 1;    // number of nodes that they are on
  int servers = 0;  // parameter servers, which make the updates; 0: the ranks make them
  // The ranks that train the same parameters on other samples, including this one; empty: all.
  std::vector<int> data_parallel = {};
  int stages = 1;             // in a pipeline: rank r has stage r mod stages
  int64_t batch = 0;          // samples of a step; 0: not known
  int64_t micro_batches = 1;  // parts of them that the model computes one after another
  // Low-precision types that the backend computes in, the preferred first; if empty, no_low_type
  // gives the reason as a clause.
  std::vector<DType> low_types = {};
  std::string no_low_type = {};
  std::string backend = "cpu";                   // the target device's
  bool host_memory = true;                       // it uses the host's memory, not its own
  std::vector<std::string> backend_passes = {};  // that only this backend has kernels for
  std::string optimizer = "momentum";            // that the job trains with
  // The type that parameters and the optimizer's states are stored in: float32 or bfloat16, which
  // is rounded stochastically.
  DType weights = DType::kFloat32;
  uint64_t seed = 1;  // the job's, for that rounding
  // Scales the loss in bfloat16 too, where it is unnecessary: for tests on the CPU.
  bool scale_low_loss = false;
  // If set, run_pass() and the strategy append what they do. Must outlive the build.
  std::vector<PassStep>* steps = nullptr;

  // Whether the backend has the kernels of a pass that not every backend has.
  bool backend_has(const std::string& pass) const;
  std::vector<int> data_parallel_ranks() const;
  int data_parallel_degree() const { return static_cast<int>(data_parallel_ranks().size()); }
};

// Operations of stream 0 compute; collectives run in parallel on streams from this one on.
inline constexpr int kCommunicationStream = 1;

class Pass {
 public:
  virtual ~Pass() = default;
  // Rewrites the program; returns whether it changed anything. Logs what it did, in the words that
  // users search for.
  virtual bool run(Program& program, const PassContext& context) = 0;
};

struct PassDef {
  std::string help;    // one line
  Attributes options;  // all options with their defaults
  // Called with every option set.
  std::unique_ptr<Pass> (*create)(const Attributes& options) = nullptr;
};

// Makes a P from the options, unless it has none.
template <typename P>
std::unique_ptr<Pass> create_pass(const Attributes& options) {
  if constexpr (std::is_constructible_v<P, const Attributes&>) {
    return std::make_unique<P>(options);
  } else {
    return std::make_unique<P>();
  }
}

Registry<PassDef>& pass_registry();

// Creates the pass of this name, runs it, and verifies the program if it changed. An unknown
// option, or one of another type, is kInternal.
bool run_pass(const std::string& name, Program& program, const PassContext& context,
              const Attributes& options = {});

// Appends a PassStep to context.steps, if that is set, when it goes out of scope.
class PassStepRecorder {
 public:
  PassStepRecorder(std::string name, const Program& program, const PassContext& context);
  ~PassStepRecorder();
  PassStepRecorder(const PassStepRecorder&) = delete;

 private:
  const std::string name_;
  const Program& program_;
  std::vector<PassStep>* const steps_;
  const int before_;
};

// FLEET_PASS(fuse_bn_act) { def.help = ...; def.create = ...; } in
// lib/engine/passes/fuse_bn_act.cc.
#define FLEET_PASS(name) \
  FLEET_REGISTER(pass_##name, ::fleet::PassDef& def, ::fleet::pass_registry().define, #name)

}  // namespace fleet
