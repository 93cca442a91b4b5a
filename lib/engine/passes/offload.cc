// offload: keeps variables of the forward part in host memory until the backward pass. Each is
// copied out after its last forward reader and copied back while the backward pass processes the
// one after it; both copies overlap with computation. The last one stays on the device because it
// is needed again at once. Runs after all passes that choose streams.
#include <algorithm>
#include <map>

#include "base/log.h"
#include "passes/pass.h"

namespace fleet {
namespace {

class Offload : public Pass {
 public:
  explicit Offload(const Attributes& options)
      : forward_name_(options.text("forward")), names_(options.texts("variables")) {}

  bool run(Program& program, const PassContext& context) override {
    program_ = &program;
    forward_ = program.find_section(forward_name_);
    backward_ = program.find_section("backward");
    FLEET_CHECK(forward_ >= 0 && backward_ >= 0, "offload before the backward pass");
    find_uses();
    for (const Op& op : program.ops()) stream_ = std::max(stream_, op.stream + 1);
    for (size_t i = 0; i + 1 < uses_.size(); ++i) move(uses_[i], uses_[i + 1]);
    insert();
    if (context.rank == 0) {
      spdlog::info("offload: {} of {} checkpoints wait in the host's memory", moved_, uses_.size());
    }
    return moved_ > 0;
  }

 private:
  // Positions of operations.
  struct Uses {
    VarId id = kNoVar;
    int last_forward = -1, first_backward = -1;
    bool in_other_sections = false;
  };

  void find_uses() {
    for (const std::string& name : names_) uses_.push_back({.id = program_->find(name)});
    const std::vector<Op>& ops = program_->ops();
    for (size_t i = 0; i < ops.size(); ++i) {
      for (Uses& uses : uses_) {
        const auto touches = [&](const std::vector<VarId>& ids) {
          return std::find(ids.begin(), ids.end(), uses.id) != ids.end();
        };
        if (!touches(ops[i].inputs) && !touches(ops[i].outputs)) continue;
        const int at = static_cast<int>(i);
        if (ops[i].section == forward_) uses.last_forward = at;
        if (ops[i].section == backward_ && uses.first_backward < 0) uses.first_backward = at;
        if (ops[i].section != forward_ && ops[i].section != backward_)
          uses.in_other_sections = true;
      }
    }
    std::erase_if(uses_, [&](const Uses& uses) {
      return uses.id == kNoVar || program_->var(uses.id).kind != VarKind::kTemporary ||
             uses.last_forward < 0 || uses.first_backward < 0 || uses.in_other_sections;
    });
    std::stable_sort(uses_.begin(), uses_.end(),
                     [](const Uses& a, const Uses& b) { return a.last_forward < b.last_forward; });
  }

  // next: the following checkpoint, whose part of the backward pass comes earlier.
  void move(const Uses& uses, const Uses& next) {
    const std::string& name = program_->var(uses.id).name;
    const VarId away = program_->temporary(name + "@HOST");
    const VarId back = program_->temporary(name + "@BACK");
    add(uses.last_forward + 1, forward_, stream_, "copy_to_host", {uses.id}, {away});
    add(next.last_forward + 1, forward_, 0, "wait_for", {away}, {});
    const int begin = std::min(next.first_backward, uses.first_backward);
    add(begin, backward_, stream_, "copy_from_host", {away, computed_before(begin)}, {back});
    for (Op& op : program_->ops()) {
      if (op.section == backward_) std::replace(op.inputs.begin(), op.inputs.end(), uses.id, back);
    }
    ++moved_;
  }

  void add(int place, SectionId section, int stream, const std::string& type,
           std::vector<VarId> inputs, std::vector<VarId> outputs) {
    Op op = program_->make_op(section, type, std::move(inputs), std::move(outputs));
    op.stream = stream;
    added_[place].push_back(std::move(op));
  }

  // A variable computed by the last operation before this position.
  VarId computed_before(int place) const {
    for (int i = place; i-- > 0;) {
      const Op& op = program_->ops()[i];
      if (op.stream != 0 || (op.section != forward_ && op.section != backward_)) continue;
      for (const VarId id : op.outputs) {
        if (id != kNoVar && program_->var(id).kind == VarKind::kTemporary) return id;
      }
    }
    return kNoVar;
  }

  void insert() {
    std::vector<Op> result;
    std::vector<Op>& ops = program_->ops();
    for (size_t i = 0; i <= ops.size(); ++i) {
      const auto here = added_.find(static_cast<int>(i));
      if (here != added_.end()) {
        result.insert(result.end(), here->second.begin(), here->second.end());
      }
      if (i < ops.size()) result.push_back(std::move(ops[i]));
    }
    ops = std::move(result);
  }

  const std::string forward_name_;
  const std::vector<std::string> names_;
  Program* program_ = nullptr;
  SectionId forward_ = -1, backward_ = -1;
  int stream_ = 1, moved_ = 0;
  std::vector<Uses> uses_;
  std::map<int, std::vector<Op>> added_;  // before the operation at this position
};

}  // namespace

FLEET_PASS(offload) {
  def.help = "keeps forward variables in host memory until the backward pass";
  def.options = {{"forward", std::string("forward")}, {"variables", std::vector<std::string>()}};
  def.create = create_pass<Offload>;
}

}  // namespace fleet
