#include "passes/pass.h"

#include <algorithm>
#include <numeric>

namespace fleet {

bool PassContext::backend_has(const std::string& pass) const {
  return std::find(backend_passes.begin(), backend_passes.end(), pass) != backend_passes.end();
}

std::vector<int> PassContext::data_parallel_ranks() const {
  if (!data_parallel.empty()) return data_parallel;
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

PassStepRecorder::PassStepRecorder(std::string name, const Program& program,
                                   const PassContext& context)
    : name_(std::move(name)),
      program_(program),
      steps_(context.steps),
      before_(static_cast<int>(program.ops().size())) {}

PassStepRecorder::~PassStepRecorder() {
  if (steps_) steps_->push_back({name_, before_, static_cast<int>(program_.ops().size())});
}

Registry<PassDef>& pass_registry() {
  static Registry<PassDef> registry("pass");
  return registry;
}

bool run_pass(const std::string& name, Program& program, const PassContext& context,
              const Attributes& options) {
  const PassDef& def = pass_registry().get(name);
  Attributes all = def.options;
  for (const auto& [option, value] : options.all()) {
    const auto known = def.options.all().find(option);
    FLEET_CHECK(known != def.options.all().end(), name + " has no option '" + option + "'");
    FLEET_CHECK(known->second.index() == value.index(),
                name + ": option '" + option + "' has another type");
    all.set(option, value);
  }
  const PassStepRecorder recorder(name, program, context);
  if (!def.create(all)->run(program, context)) return false;
  verify(program);
  return true;
}

}  // namespace fleet
