#include <algorithm>
#include <set>

#include "optim/update_op.h"
#include "passes/sharding.h"

namespace fleet {
namespace {

// Operations from `begin` on, up to the next segment, that read these parameters for the first time
// in their section.
struct Segment {
  SectionId section = -1;
  size_t begin = 0;         // index of an operation
  std::vector<VarId> vars;  // in the order of use
  size_t fetched_at = 0;    // the position of the messages
  VarId after = kNoVar;     // what they wait for
};

class FetchParameters {
 public:
  FetchParameters(Program& program, const Owners& owners, const FetchOptions& options)
      : program_(program), options_(options) {
    for (const auto& [parameter, owner] : owners) {
      add(parameter, owner);
      const VarId copy = program.copy_of(parameter);
      if (copy != kNoVar) add(copy, owner);
    }
  }

  int run() {
    place_other_ops();
    std::vector<Segment> training = cut({.step = 0});
    std::vector<Segment> evaluation = cut({.evaluate = true});
    const int count = static_cast<int>(training.size());
    schedule(training, {.step = 0});
    schedule(evaluation, {.evaluate = true});
    training.insert(training.end(), evaluation.begin(), evaluation.end());
    rewrite(training);
    return count;
  }

 private:
  void add(VarId id, int owner) {
    owners_[id] = owner;
    Var& var = program_.var(id);
    var.owner = options_.savers[owner];
    var.remote = owner != options_.place;
  }

  bool is_sharded(VarId id) const { return id != kNoVar && owners_.contains(id); }

  // Whether the section reads temporaries instead.
  bool fetches(SectionId section) const {
    const Section& known = program_.sections()[section];
    return !known.remote && section != options_.optimize &&
           (known.when.training || known.when.evaluation);
  }

  [[noreturn]] static void refuse(const Op& op) {
    throw Error(ErrorCode::kUnsupported,
                "sharding_configs.stage 3 cannot be combined with an operation that needs whole "
                "parameters outside of the model: " +
                    op.type(),
                "strategy", "set sharding_configs.stage to 2");
  }

  // Updates, and what they compute from their owner's parameters, such as a norm.
  bool is_part_of_update(const Op& op) const {
    if (op.section == options_.remote) return true;
    if (op.section != options_.optimize) return false;
    const auto is_own = [&](VarId id) {
      return !is_sharded(id) || owners_.at(id) == options_.place;
    };
    const bool writes = std::ranges::any_of(op.outputs, [&](VarId id) { return is_sharded(id); });
    return is_update(op) || (!writes && std::ranges::all_of(op.inputs, is_own));
  }

  // Casts of parameters to their copies (section "refresh") run on the owners.
  void place_other_ops() {
    SectionId refresh = -1;
    for (Op& op : program_.ops()) {
      if (is_part_of_update(op)) continue;
      std::set<int> owners;
      for (const VarId id : op.outputs) {
        if (is_sharded(id)) owners.insert(owners_.at(id));
      }
      const bool reads =
          std::any_of(op.inputs.begin(), op.inputs.end(), [&](VarId id) { return is_sharded(id); });
      if (owners.empty() && (!reads || fetches(op.section))) continue;
      const Predicate when = program_.sections()[op.section].when;
      if (owners.size() != 1 || !when.refresh) {
        refuse(op);
      }
      if (*owners.begin() == options_.place) continue;
      if (refresh < 0) refresh = program_.add_section("refresh_remote", when, true);
      op.section = refresh;
    }
  }

  std::vector<Segment> cut(const StepInfo& step) const {
    std::vector<Segment> segments;
    std::map<SectionId, std::set<VarId>> seen;
    int64_t bytes = 0;
    for (size_t i = 0; i < program_.ops().size(); ++i) {
      const Op& op = program_.ops()[i];
      if (!fetches(op.section) || !program_.sections()[op.section].when.holds(step)) continue;
      std::vector<VarId> fresh;
      for (const VarId id : op.inputs) {
        if (is_sharded(id) && seen[op.section].insert(id).second) fresh.push_back(id);
      }
      if (fresh.empty()) continue;
      const bool full = static_cast<double>(bytes) >= options_.megabytes * 1024 * 1024;
      if (segments.empty() || segments.back().section != op.section || full) {
        segments.push_back({.section = op.section, .begin = i, .vars = {}});
        bytes = 0;
      }
      for (const VarId id : fresh) {
        segments.back().vars.push_back(id);
        bytes += program_.var(id).shape.elements() *
                 static_cast<int64_t>(size_of(program_.var(id).dtype));
      }
    }
    return segments;
  }

  // Segment k + 1 is sent when segment k begins to compute: then all that read segment k - 1 has
  // been computed.
  void schedule(std::vector<Segment>& segments, const StepInfo& step) const {
    for (size_t k = 0; k < segments.size(); ++k) {
      const size_t before = k == 0 ? 0 : k - 1;
      segments[k].fetched_at = segments[before].begin;
      if (before > 0) segments[k].after = last_result_before(segments[before].begin, step);
    }
  }

  VarId last_result_before(size_t position, const StepInfo& step) const {
    for (size_t i = position; i-- > 0;) {
      const Op& op = program_.ops()[i];
      if (op.stream != 0 || !program_.sections()[op.section].when.holds(step)) continue;
      for (const VarId id : op.writes()) return id;
    }
    return kNoVar;
  }

  void rewrite(const std::vector<Segment>& segments) {
    std::map<size_t, std::vector<Op>> messages;           // by position
    std::map<SectionId, std::map<VarId, VarId>> fetched;  // by section and parameter
    for (const Segment& segment : segments) {
      std::map<std::pair<int, DType>, std::vector<VarId>> parts;  // by owner and type
      for (const VarId id : segment.vars) {
        parts[{owners_.at(id), program_.var(id).dtype}].push_back(id);
      }
      for (const auto& [part, vars] : parts) {
        std::vector<VarId> outputs;
        for (const VarId id : vars) {
          const VarId copy = program_.temporary(program_.var(id).name + ".fetched");
          program_.var(copy).fetched_from = id;
          outputs.push_back(fetched[segment.section][id] = copy);
        }
        Op op = program_.make_op(
            segment.section, "fetch_parameters", vars, outputs,
            {{"root", int64_t{part.first}}, {"communicator", int64_t{options_.group}}});
        op.stream = options_.stream;
        if (segment.after != kNoVar) op.after = {segment.after};
        messages[segment.fetched_at].push_back(std::move(op));
      }
    }
    std::vector<Op> ops;
    for (size_t i = 0; i < program_.ops().size(); ++i) {
      for (Op& message : messages[i]) ops.push_back(std::move(message));
      Op& op = program_.ops()[i];
      if (const auto here = fetched.find(op.section); here != fetched.end()) {
        for (VarId& id : op.inputs) {
          if (const auto found = here->second.find(id); found != here->second.end()) {
            id = found->second;
          }
        }
      }
      const bool whole =
          fetches(op.section) && op.type() != "fetch_parameters" &&
          std::any_of(op.inputs.begin(), op.inputs.end(), [&](VarId id) { return is_sharded(id); });
      if (whole) refuse(op);
      ops.push_back(std::move(op));
    }
    program_.ops() = std::move(ops);
  }

  Program& program_;
  const FetchOptions& options_;
  std::map<VarId, int> owners_;  // owners of parameters and copies
};

}  // namespace

int fetch_parameters(Program& program, const Owners& owners, const FetchOptions& options) {
  return FetchParameters(program, owners, options).run();
}

}  // namespace fleet
