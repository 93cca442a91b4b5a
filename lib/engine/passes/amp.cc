// amp: runs forward operations in a low-precision type where Paddle's lists allow it, with casts
// between. Runs before the fusions and the backward pass, which follow the types.
//
// White operations run in the low type. Black operations and those on no list run in float32. Gray
// operations follow their inputs: float32 if a black operation made any of them, otherwise low if a
// white one made any, otherwise unchanged. pure (use_pure_fp16, use_pure_bf16): gray operations are
// always low. A loss counts as of a black operation, also for pure: a result that a white operation
// leaves in float32, or that stays float32 by its trait. So does what combines anything with a
// float32 feed, such as targets or weights. An operation that uses a variable of black_variables is
// black. A variable is cast once for all readers that run when the first of them runs.
#include <algorithm>
#include <map>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "graph/op.h"
#include "ops/collective.h"
#include "ops/mixed_precision.h"
#include "optim/update_op.h"
#include "passes/pass.h"

namespace fleet {
namespace {

enum class Verdict { kLow, kFloat32, kAsItIs };

bool contains(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Operations outside the forward part, and those whose types this pass does not choose.
bool is_never_rewritten(const OpDef& def) {
  return def.find_trait<Collective>() || def.find_trait<ParameterUpdate>() ||
         def.type.ends_with("_grad") || !mixed_precision_of(def).on_custom_lists;
}

class Amp : public Pass {
 public:
  explicit Amp(const Attributes& options)
      : low_(to_dtype(options.text("low"))),
        pure_(options.boolean("pure")),
        white_(options.texts("white_list")),
        black_(options.texts("black_list")),
        black_variables_(options.texts("black_variables")) {}

  bool run(Program& program, const PassContext&) override {
    FLEET_CHECK(program.find_section("backward") < 0, "amp runs before the backward pass");
    check_lists(program);
    made_.assign(program.var_count(), Verdict::kAsItIs);
    stays_float32_.assign(program.var_count(), false);
    const std::vector<Op> ops = std::move(program.ops());
    program.ops().clear();
    for (const Op& op : ops) rewrite(program, op);
    drop_casts_of_chosen_types(program);
    const auto level = low_count_ == 0 ? spdlog::level::warn : spdlog::level::info;
    spdlog::log(level, "amp: {} of {} forward operations in {}", low_count_, ops.size(),
                name_of(low_));
    return true;
  }

 private:
  void check_lists(const Program& program) const {
    for (const std::vector<std::string>* list : {&white_, &black_}) {
      for (const std::string& type : *list) {
        if (!is_never_rewritten(op_registry().get(type))) continue;
        throw Error(ErrorCode::kUsage, "amp does not choose the type of '" + type + "'",
                    list == &white_ ? "amp custom_white_list" : "amp custom_black_list",
                    "list operations of the forward part only");
      }
    }
    for (const std::string& type : white_) {
      if (!contains(black_, type)) continue;
      throw Error(ErrorCode::kUsage, "'" + type + "' is on both custom lists", "amp",
                  "take it off one of them");
    }
    for (const std::string& name : black_variables_) {
      if (program.find(name) != kNoVar) continue;
      std::vector<std::string> known;
      for (VarId id = 0; id < program.var_count(); ++id) known.push_back(program.var(id).name);
      throw Error(ErrorCode::kUsage, "no variable '" + name + "'", "amp custom_black_varnames",
                  suggestion(name, known));
    }
    warn_about_unknown_ops(program);
  }

  void warn_about_unknown_ops(const Program& program) const {
    std::set<std::string> absent(white_.begin(), white_.end());
    absent.insert(black_.begin(), black_.end());
    for (const Op& op : program.ops()) absent.erase(op.type());
    if (absent.empty()) return;
    spdlog::warn("amp: on a custom list, but not in this network: {}",
                 join(std::vector<std::string>(absent.begin(), absent.end()), ", "));
  }

  Precision precision_of(const Op& op) const {
    if (contains(white_, op.type())) return Precision::kWhite;
    if (contains(black_, op.type())) return Precision::kBlack;
    return mixed_precision_of(*op.def).precision;
  }

  // black_variables lists names of training; they also apply to the evaluation's variables.
  bool is_black_variable(const Program& program, VarId id) const {
    if (id == kNoVar) return false;
    const std::string &name = program.var(id).name, prefix = "evaluate/";
    return contains(black_variables_, name) ||
           (name.starts_with(prefix) && contains(black_variables_, name.substr(prefix.size())));
  }

  Verdict judge(const Program& program, const Op& op) const {
    const auto black = [&](VarId id) { return is_black_variable(program, id); };
    if (std::any_of(op.inputs.begin(), op.inputs.end(), black) ||
        std::any_of(op.outputs.begin(), op.outputs.end(), black)) {
      return Verdict::kFloat32;
    }
    const Precision precision = precision_of(op);
    if (precision == Precision::kBlack) return Verdict::kFloat32;
    if (joins_loss(program, op)) return Verdict::kFloat32;
    if (op.reads().empty()) return Verdict::kAsItIs;  // a constant
    if (precision == Precision::kWhite || pure_) return Verdict::kLow;
    Verdict verdict = Verdict::kAsItIs;
    for (VarId id : op.reads()) {
      if (made_[id] == Verdict::kFloat32) return Verdict::kFloat32;
      if (made_[id] == Verdict::kLow) verdict = Verdict::kLow;
    }
    return verdict;
  }

  // Whether the input stays float32 whatever the operation runs in.
  static bool keeps_float32(const Op& op, size_t input) {
    const std::vector<int>& kept = mixed_precision_of(*op.def).float32_inputs;
    return std::find(kept.begin(), kept.end(), static_cast<int>(input)) != kept.end();
  }

  bool reads_float32_result(const Op& op) const {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const VarId id = op.inputs[i];
      if (id != kNoVar && !keeps_float32(op, i) && stays_float32_[id]) return true;
    }
    return false;
  }

  // Whether a gray operation computes with a loss, or with targets or weights that are fed.
  bool joins_loss(const Program& program, const Op& op) const {
    return precision_of(op) == Precision::kGray &&
           (reads_float32_result(op) || joins_feed(program, op));
  }

  // Whether it reads a float32 feed and something else of a floating type.
  static bool joins_feed(const Program& program, const Op& op) {
    int floating = 0;
    bool feed = false;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      const VarId id = op.inputs[i];
      if (id == kNoVar || keeps_float32(op, i) || !is_floating(program.var(id).dtype)) continue;
      ++floating;
      feed |= program.var(id).kind == VarKind::kFeed && program.var(id).dtype == DType::kFloat32;
    }
    return feed && floating > 1;
  }

  void rewrite(Program& program, const Op& op) {
    const Verdict verdict = judge(program, op);
    const bool of_float32_result =
        verdict == Verdict::kFloat32 && (reads_float32_result(op) || joins_loss(program, op) ||
                                         mixed_precision_of(*op.def).stays_float32);
    std::vector<VarId> inputs = op.inputs;
    for (size_t i = 0; i < inputs.size() && verdict != Verdict::kAsItIs; ++i) {
      if (inputs[i] == kNoVar || keeps_float32(op, i)) continue;
      inputs[i] = in_type(program, inputs[i], verdict == Verdict::kLow ? low_ : DType::kFloat32,
                          op.section);
    }
    for (VarId id : op.writes()) {
      made_[id] = verdict;
      Var& var = program.var(id);
      if (var.kind == VarKind::kTemporary) var.shape_known = false;  // inferred again
    }
    low_count_ += verdict == Verdict::kLow;
    program.ops().push_back(
        program.make_op(op.section, op.type(), inputs, op.outputs, op.attributes));
    program.ops().back().stream = op.stream;
    for (VarId id : op.writes()) {
      const bool wide = verdict == Verdict::kLow && precision_of(op) == Precision::kWhite &&
                        program.var(id).dtype == DType::kFloat32;
      stays_float32_[id] = wide || of_float32_result;
    }
  }

  // Returns the variable in this type: itself or a cast of it.
  VarId in_type(Program& program, VarId id, DType dtype, SectionId section) {
    const Var& var = program.var(id);
    const bool casts = var.dtype == DType::kFloat32 || var.dtype == low_;
    if (!casts || var.dtype == dtype) return id;
    for (const auto& [made_in, copy] : casts_[id]) {
      if (program.sections()[made_in].when.covers(program.sections()[section].when)) return copy;
    }
    const VarId copy = program.temporary(var.name + ".as_" + name_of(dtype));
    program.append(section, "cast", {id}, {copy}, {{"to", std::string(name_of(dtype))}});
    casts_[id].emplace_back(section, copy);
    return copy;
  }

  // An operation with a type attribute that produces floating values (normalize_image) produces the
  // low type directly if nothing else reads the original output.
  void drop_casts_of_chosen_types(Program& program) const {
    std::vector<Op>& ops = program.ops();
    std::vector<int> readers(program.var_count()), writer(program.var_count(), -1);
    for (size_t i = 0; i < ops.size(); ++i) {
      for (VarId id : ops[i].reads()) ++readers[id];
      for (VarId id : ops[i].writes()) writer[id] = static_cast<int>(i);
    }
    std::vector<Op> kept;
    std::vector<int> place(ops.size());  // for the operations that are kept
    for (size_t i = 0; i < ops.size(); ++i) {
      const VarId from = ops[i].type() == "cast" ? ops[i].inputs[0] : kNoVar;
      Op* maker = from == kNoVar || writer[from] < 0 ? nullptr : &kept[place[writer[from]]];
      if (maker && readers[from] == 1 && maker->section == ops[i].section &&
          chooses_type(program, *maker)) {
        Attributes attributes = maker->attributes;
        attributes.set("to", ops[i].attributes.text("to"));
        *maker = program.make_op(maker->section, maker->type(), maker->inputs, ops[i].outputs,
                                 attributes);
        continue;
      }
      place[i] = static_cast<int>(kept.size());
      kept.push_back(std::move(ops[i]));
    }
    ops = std::move(kept);
  }

  static bool chooses_type(const Program& program, const Op& op) {
    const auto is_float = [&](VarId id) {
      return id != kNoVar && is_floating(program.var(id).dtype);
    };
    return op.attributes.has("to") && op.outputs.size() == 1 &&
           std::none_of(op.inputs.begin(), op.inputs.end(), is_float);
  }

  const DType low_;
  const bool pure_;
  const std::vector<std::string> white_, black_, black_variables_;
  std::vector<Verdict> made_;        // by variable: the precision of the operation that writes it
  std::vector<bool> stays_float32_;  // by variable: a loss, or made from one
  std::map<VarId, std::vector<std::pair<SectionId, VarId>>> casts_;
  size_t low_count_ = 0;
};

}  // namespace

FLEET_PASS(amp) {
  def.help = "runs operations in a low floating type where Paddle's lists allow it";
  def.options = {{"low", std::string("bfloat16")},
                 {"pure", false},
                 {"white_list", std::vector<std::string>()},
                 {"black_list", std::vector<std::string>()},
                 {"black_variables", std::vector<std::string>()}};
  def.create = create_pass<Amp>;
}

}  // namespace fleet
