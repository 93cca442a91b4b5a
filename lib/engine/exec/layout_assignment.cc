#include <map>

#include "exec/assignment.h"

namespace fleet {
namespace {

class Assignment {
 public:
  Assignment(Plan& plan, const PlanOptions& options)
      : plan_(plan), program_(plan.program), options_(options), current_(program_.var_count()) {
    for (VarId id = 0; id < program_.var_count(); ++id) {
      const Var& var = program_.var(id);
      const auto fixed = options.initial_layouts.find(id);
      if (fixed != options.initial_layouts.end()) {
        current_[id] = fixed->second;
      } else if (var.kind == VarKind::kFeed) {
        current_[id] = Layout::plain(var.shape);
      }
    }
  }

  void run() {
    const std::vector<Op> ops = program_.ops();
    for (const Op& op : ops) place(op);
    settle_fetches();
    plan_.vars.resize(program_.var_count());
    for (VarId id = 0; id < program_.var_count(); ++id) {
      const Var& var = program_.var(id);
      const std::optional<Layout>& layout = current(id);
      plan_.vars[id].used = layout.has_value() || var.kind != VarKind::kTemporary;
      if (!plan_.vars[id].used) continue;
      plan_.vars[id].layout = layout ? *layout : Layout::plain(var.shape);
      plan_.vars[id].bytes = plan_.vars[id].layout.elements() * size_of(var.dtype);
    }
  }

 private:
  // A fetched parameter has the layout of the parameter, whichever of them is used first.
  std::optional<Layout>& current(VarId id) {
    const VarId source = program_.var(id).fetched_from;
    return current_[source == kNoVar ? id : source];
  }

  std::optional<Layout> layout_of(VarId id) { return id == kNoVar ? std::nullopt : current(id); }

  // The layout that an output must end in: one that it already has, or that of the parameter whose
  // gradient it is.
  std::optional<Layout> bound(VarId id) {
    if (id == kNoVar) return std::nullopt;
    if (current(id)) return current(id);
    const VarId parameter = program_.var(id).gradient_of;
    if (parameter == kNoVar || program_.var(parameter).kind != VarKind::kParameter) {
      return std::nullopt;
    }
    return current_[parameter];
  }

  void place(Op op) {
    const KernelDef& kernel = find_kernel(options_.backend, program_, op);
    if (is_fetch(op)) return push(op, kernel, 0);
    std::vector<std::optional<Layout>> inputs, outputs;
    for (VarId id : op.inputs) inputs.push_back(layout_of(id));
    for (VarId id : op.outputs) outputs.push_back(bound(id));
    const Op asked = op;
    LayoutQuery query(program_, asked, inputs, outputs, options_.device);
    if (kernel.layouts) kernel.layouts(query);

    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (op.inputs[i] == kNoVar) continue;
      std::optional<Layout>& now = current(op.inputs[i]);
      // Fixes the layout of a free parameter or state.
      if (!now) now = query.needed(static_cast<int>(i));
      if (*now != query.needed(static_cast<int>(i))) {
        op.inputs[i] = reordered(op.inputs[i], query.needed(static_cast<int>(i)), op);
      }
    }
    // Variable that the kernel writes -> its destination.
    std::vector<std::pair<VarId, VarId>> afterwards;
    for (size_t i = 0; i < op.outputs.size(); ++i) {
      const VarId id = op.outputs[i];
      if (id == kNoVar) continue;
      forget_copies(id);
      const Layout& given = query.given(static_cast<int>(i));
      if (!outputs[i] || *outputs[i] == given) {
        current_[id] = given;
        continue;
      }
      current_[id] = *outputs[i];
      op.outputs[i] = copy_var(id, given);
      afterwards.emplace_back(op.outputs[i], id);
    }
    push(op, kernel, query.workspace());
    for (const auto& [from, to] : afterwards) push_reorder(from, to, op);
  }

  bool is_fetch(const Op& op) const {
    return !op.outputs.empty() && op.outputs[0] != kNoVar &&
           program_.var(op.outputs[0]).fetched_from != kNoVar;
  }

  // Their layouts are known when all readers have been placed.
  void settle_fetches() {
    for (PlannedOp& planned : plan_.ops) {
      if (!is_fetch(planned.op)) continue;
      planned.input_layouts.clear();
      for (VarId id : planned.op.outputs) {
        std::optional<Layout>& layout = current(id);
        if (!layout) layout = Layout::plain(program_.var(id).shape);
        planned.input_layouts.push_back(*layout);
      }
      planned.output_layouts = planned.input_layouts;
    }
  }

  VarId copy_var(VarId id, const Layout& layout) {
    const VarId copy = program_.temporary(program_.var(id).name + "@" + layout.text());
    Var& var = program_.var(copy);
    var.dtype = program_.var(id).dtype;
    var.shape = program_.var(id).shape;
    var.shape_known = true;
    current_.resize(program_.var_count());
    current_[copy] = layout;
    return copy;
  }

  // Returns a copy in this layout, made once for all readers that run whenever its first reader
  // runs.
  VarId reordered(VarId id, const Layout& layout, const Op& reader) {
    const Section& section = program_.sections()[reader.section];
    const std::string when = section.when.text() + (section.remote ? " remote" : "");
    const auto key = std::make_pair(layout.text() + "/" + when, id);
    const auto found = copies_.find(key);
    if (found != copies_.end()) return found->second;
    const VarId copy = copy_var(id, layout);
    push_reorder(id, copy, reader);
    copies_[key] = copy;
    return copy;
  }

  void forget_copies(VarId id) {
    std::erase_if(copies_, [id](const auto& entry) { return entry.first.second == id; });
  }

  // On the stream that computes, also for messages: a CPU's kernels run as soon as they are issued.
  void push_reorder(VarId from, VarId to, const Op& like) {
    const Op op = program_.make_op(like.section, "reorder", {from}, {to});
    push(op, find_kernel(options_.backend, program_, op), 0);
  }

  void push(const Op& op, const KernelDef& kernel, size_t workspace) {
    PlannedOp planned{.op = op, .kernel = &kernel, .workspace = workspace};
    for (VarId id : op.inputs) planned.input_layouts.push_back(layout_of(id).value_or(Layout()));
    for (VarId id : op.outputs) planned.output_layouts.push_back(layout_of(id).value_or(Layout()));
    plan_.ops.push_back(std::move(planned));
  }

  Plan& plan_;
  Program& program_;
  const PlanOptions& options_;
  std::vector<std::optional<Layout>> current_;
  std::map<std::pair<std::string, VarId>, VarId> copies_;
};

}  // namespace

void assign_layouts(Plan& plan, const PlanOptions& options) { Assignment(plan, options).run(); }

}  // namespace fleet
