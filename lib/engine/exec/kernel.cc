#include "exec/kernel.h"

#include <algorithm>

namespace fleet {
namespace {

std::vector<Layout> plain_layouts(const Program& program, const std::vector<VarId>& vars) {
  std::vector<Layout> layouts;
  for (VarId id : vars) {
    layouts.push_back(id == kNoVar ? Layout() : Layout::plain(program.var(id).shape));
  }
  return layouts;
}

Registry<KernelDef>& kernel_registry() {
  static Registry<KernelDef> registry("kernel");
  return registry;
}

std::string kernel_name(const std::string& backend, const std::string& op) {
  return backend + "/" + op;
}

// The type that selects the kernel: that of the first floating input, otherwise of the first
// output.
DType main_dtype(const Program& program, const Op& op) {
  for (VarId id : op.vars()) {
    if (is_floating(program.var(id).dtype)) return program.var(id).dtype;
  }
  for (VarId id : op.writes()) return program.var(id).dtype;
  return DType::kFloat32;
}

}  // namespace

LayoutQuery::LayoutQuery(const Program& program, const Op& op,
                         std::vector<std::optional<Layout>> inputs,
                         std::vector<std::optional<Layout>> outputs, Device* device)
    : program_(program),
      op_(op),
      device_(device),
      inputs_(std::move(inputs)),
      outputs_(std::move(outputs)),
      needed_(plain_layouts(program, op.inputs)),
      given_(plain_layouts(program, op.outputs)) {}

bool LayoutQuery::has_input(int i) const { return i < input_count() && op_.inputs[i] != kNoVar; }
bool LayoutQuery::has_output(int i) const { return i < output_count() && op_.outputs[i] != kNoVar; }

void same_layout(LayoutQuery& query, bool keeps_zeros) {
  std::optional<Layout> common;
  Shape shape;
  for (int i = 0; i < query.input_count() && !common; ++i) {
    if (!query.has_input(i) || !is_floating(query.input_var(i).dtype)) continue;
    if (shape.rank() == 0) shape = query.input_var(i).shape;
    if (query.input_var(i).shape == shape) common = query.input(i);
  }
  if (!common || common->is_opaque()) return;
  if (!keeps_zeros && common->elements() != shape.elements()) return;
  for (int i = 0; i < query.input_count(); ++i) {
    if (query.has_input(i) && query.input_var(i).shape == shape) query.need(i, *common);
  }
  for (int i = 0; i < query.output_count(); ++i) {
    if (query.has_output(i) && query.output_var(i).shape == shape) query.give(i, *common);
  }
}

bool register_kernel(const std::string& backend, const std::string& op,
                     void (*define)(KernelDef&)) {
  return kernel_registry().define(kernel_name(backend, op), define);
}

const KernelDef& find_kernel(const std::string& backend, const Program& program, const Op& op) {
  if (const KernelDef* any = kernel_registry().find(kernel_name("any", op.type()))) return *any;
  const KernelDef* def = kernel_registry().find(kernel_name(backend, op.type()));
  if (!def) {
    throw Error(ErrorCode::kUnsupported, op.type() + ": no " + backend + " kernel", {},
                "give it one: FLEET_KERNEL(" + backend + ", " + op.type() + ")");
  }
  const DType dtype = main_dtype(program, op);
  if (std::find(def->dtypes.begin(), def->dtypes.end(), dtype) == def->dtypes.end()) {
    const bool low = dtype == DType::kFloat16 || dtype == DType::kBFloat16;  // chosen by amp
    throw Error(ErrorCode::kUnsupported,
                op.type() + ": no " + backend + " kernel for " + name_of(dtype), {},
                low ? "take it off strategy.amp_configs.custom_white_list, or put it on "
                      "custom_black_list"
                    : "");
  }
  return *def;
}

}  // namespace fleet
