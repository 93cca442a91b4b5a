#include <algorithm>
#include <map>
#include <set>

#include "exec/assignment.h"
#include "exec/stream_order.h"
#include "ops/offload.h"
#include "ops/permutation.h"

namespace fleet {
namespace {

// The first and the last operation of one section and stream that use something. The operations
// between them are ordered after the first and before the last.
struct Uses {
  SectionId section = 0;
  int stream = 0;
  int first = 0, last = 0;
};

void add_uses(std::vector<Uses>& all, const Uses& more) {
  for (Uses& uses : all) {
    if (uses.section != more.section || uses.stream != more.stream) continue;
    uses.first = std::min(uses.first, more.first);
    uses.last = std::max(uses.last, more.last);
    return;
  }
  all.push_back(more);
}

// Whether output 0 has the memory order of input 0, whose axes it has in another order.
bool keeps_order(const PlannedOp& planned) {
  if (!planned.op.def->find_trait<Permutation>()) return false;
  const Layout &from = planned.input_layouts[0], &to = planned.output_layouts[0];
  if (from.is_opaque() || to.is_opaque() || !from.inner().empty() || !to.inner().empty()) {
    return false;
  }
  const std::vector<int64_t>& perm = planned.op.attributes.integers("perm");
  for (size_t d = 0; d < perm.size(); ++d) {
    if (to.padded()[static_cast<int>(d)] == 1) continue;
    if (to.strides()[d] != from.strides()[static_cast<size_t>(perm[d])]) return false;
  }
  return true;
}

// The inputs whose memory outputs may take over: {input, output}.
std::vector<std::pair<int, int>> inplace_of(const PlannedOp& planned) {
  if (keeps_order(planned)) return {{0, 0}};
  return planned.op.def->inplace;
}

// Memory that is live within a step: for a chain of variables, or for variables each of which takes
// over its predecessor's memory in place.
struct Piece {
  std::vector<Uses> uses;
  size_t bytes = 0, offset = 0;
  std::vector<std::pair<VarId, size_t>> vars;  // with their offsets in the piece
};

class ArenaAssignment {
 public:
  ArenaAssignment(Plan& plan, const std::vector<VarId>& keep) : plan_(plan), order_(plan) {
    const int count = plan.program.var_count();
    uses_.resize(count);
    kept_.assign(count, false);
    for (VarId id : keep) kept_[id] = true;
  }

  void run() {
    find_uses();
    place_buckets();
    place_persistent();
    plan_.host_bytes = place_on_host();
    make_pieces();
    plan_.arena_bytes = place(pieces_, 0);
    for (const PlannedOp& planned : plan_.ops) {
      std::vector<size_t>& bytes = plan_.workspace_bytes;
      const size_t stream = planned.op.stream;
      if (bytes.size() <= stream) bytes.resize(stream + 1);
      bytes[stream] = std::max(bytes[stream], aligned(planned.workspace));
    }
  }

 private:
  void find_uses() {
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      const Op& op = plan_.ops[i].op;
      const int at = static_cast<int>(i);
      for (VarId id : op.vars()) add_uses(uses_[id], {op.section, op.stream, at, at});
    }
  }

  bool lasts(VarId id) const {
    return plan_.program.var(id).kind != VarKind::kTemporary || kept_[id];
  }

  // In each group's memory, persistent variables come first, then those that are live within a
  // step.
  void place_buckets() {
    std::map<GroupId, std::vector<Piece>> pieces;
    std::map<GroupId, size_t> bytes;
    for (const ContiguousVars& chain : find_contiguous_vars(plan_)) {
      Piece piece;
      const bool own = plan_.program.groups()[chain.group].own_memory;
      bool lasting = !own && differs_between_ranks(chain.vars);
      for (VarId id : chain.vars) {
        PlannedVar& var = plan_.vars[id];
        chained_.insert(id);
        if (!own) var.region = Region::kBucket;
        var.group = chain.group;
        piece.vars.emplace_back(id, piece.bytes);
        piece.bytes += aligned(var.bytes);
        for (const Uses& uses : uses_[id]) add_uses(piece.uses, uses);
        lasting = lasting || lasts(id);
      }
      if (own) {
        place_own(std::move(piece), lasting);
      } else if (lasting) {
        settle(piece, bytes[chain.group]);
        bytes[chain.group] += piece.bytes;
      } else {
        bytes.try_emplace(chain.group, 0);
        pieces[chain.group].push_back(std::move(piece));
      }
    }
    for (auto& [group, size] : bytes) {
      if (plan_.bucket_bytes.size() <= static_cast<size_t>(group)) {
        plan_.bucket_bytes.resize(group + 1);
      }
      plan_.bucket_bytes[group] = place(pieces[group], size);
    }
  }

  // Whether ranks use these variables at different times in a step: gradients whose sums only the
  // owner reads.
  bool differs_between_ranks(const std::vector<VarId>& vars) const {
    const std::vector<Section>& sections = plan_.program.sections();
    return std::any_of(sections.begin(), sections.end(),
                       [](const Section& section) { return section.remote; }) &&
           std::any_of(vars.begin(), vars.end(),
                       [&](VarId id) { return plan_.program.var(id).gradient_of != kNoVar; });
  }

  // A chain in the rank's own memory, among other variables.
  void place_own(Piece piece, bool lasting) {
    if (!lasting) return pieces_.push_back(std::move(piece));
    for (const auto& [id, inside] : piece.vars) plan_.vars[id].region = Region::kPersistent;
    settle(piece, plan_.persistent_bytes);
    plan_.persistent_bytes += piece.bytes;
  }

  void place_persistent() {
    for (VarId id = 0; id < plan_.program.var_count(); ++id) {
      PlannedVar& var = plan_.vars[id];
      if (!var.used || chained_.contains(id) || !lasts(id)) continue;
      var.region = Region::kPersistent;
      var.offset = plan_.persistent_bytes;
      plan_.persistent_bytes += aligned(var.bytes);
    }
  }

  // Returns the bytes used.
  size_t place_on_host() {
    std::vector<Piece> pieces;
    for (const PlannedOp& planned : plan_.ops) {
      if (!writes_host_memory(*planned.op.def)) continue;
      for (VarId id : planned.op.outputs) {
        plan_.vars[id].region = Region::kHost;
        pieces.push_back({uses_[id], aligned(plan_.vars[id].bytes), 0, {{id, 0}}});
      }
    }
    return place(pieces, 0);
  }

  bool in_arena(VarId id) const {
    return id != kNoVar && plan_.vars[id].used && plan_.vars[id].region == Region::kArena;
  }

  void make_pieces() {
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      const PlannedOp& planned = plan_.ops[i];
      for (VarId id : planned.op.outputs) {
        if (!in_arena(id) || piece_of_.contains(id) || chained_.contains(id)) continue;
        if (join_inplace(planned, id, static_cast<int>(i))) continue;
        piece_of_[id] = pieces_.size();
        pieces_.push_back({uses_[id], aligned(plan_.vars[id].bytes), 0, {{id, 0}}});
      }
    }
  }

  // The output takes over an input's memory if the operation allows it and every other use of the
  // input has ended by then.
  bool join_inplace(const PlannedOp& planned, VarId output, int at) {
    const Op& op = planned.op;
    for (const auto& [in, out] : inplace_of(planned)) {
      if (out >= static_cast<int>(op.outputs.size()) || op.outputs[out] != output) continue;
      const VarId input = in < static_cast<int>(op.inputs.size()) ? op.inputs[in] : kNoVar;
      if (!in_arena(input) || !piece_of_.contains(input)) continue;
      if (plan_.vars[input].bytes != plan_.vars[output].bytes) continue;
      if (std::count(op.inputs.begin(), op.inputs.end(), input) != 1) continue;
      Piece& piece = pieces_[piece_of_[input]];
      if (!precede(piece.uses, uses_[output], at)) continue;
      for (const Uses& uses : uses_[output]) add_uses(piece.uses, uses);
      piece.vars.emplace_back(output, 0);
      piece_of_[output] = piece_of_[input];
      return true;
    }
    return false;
  }

  // Whether all of `a` has ended before any of `b` starts, in every run. Both may be operation
  // `at`.
  bool precede(const std::vector<Uses>& a, const std::vector<Uses>& b, int at = -1) {
    return std::all_of(a.begin(), a.end(), [&](const Uses& earlier) {
      return std::all_of(b.begin(), b.end(), [&](const Uses& later) {
        if (earlier.last == at && later.first == at) return true;
        return order_.before(earlier.last, later.first);
      });
    });
  }

  void settle(const Piece& piece, size_t offset) {
    for (const auto& [id, inside] : piece.vars) plan_.vars[id].offset = offset + inside;
  }

  // Places the largest piece first, each at the lowest offset from `begin` on that is free whenever
  // the piece is live. Returns the end of the last one.
  size_t place(std::vector<Piece>& pieces, size_t begin) {
    std::vector<Piece*> order;
    for (Piece& piece : pieces) order.push_back(&piece);
    std::stable_sort(order.begin(), order.end(),
                     [](const Piece* a, const Piece* b) { return a->bytes > b->bytes; });
    std::vector<const Piece*> placed;  // by offset
    size_t end = begin;
    for (Piece* piece : order) {
      size_t offset = begin;
      for (const Piece* other : placed) {
        if (precede(other->uses, piece->uses) || precede(piece->uses, other->uses)) continue;
        if (offset + piece->bytes <= other->offset) break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      piece->offset = offset;
      end = std::max(end, offset + piece->bytes);
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), piece,
                           [](const Piece* a, const Piece* b) { return a->offset < b->offset; }),
          piece);
      settle(*piece, offset);
      for (const auto& [id, inside] : piece->vars) plan_.vars[id].shared = true;
    }
    return end;
  }

  Plan& plan_;
  StreamOrder order_;
  std::vector<std::vector<Uses>> uses_;  // by variable
  std::vector<bool> kept_;
  std::set<VarId> chained_;  // in a chain of contiguous variables
  std::map<VarId, size_t> piece_of_;
  std::vector<Piece> pieces_;
};

}  // namespace

void assign_memory(Plan& plan, const std::vector<VarId>& keep) {
  ArenaAssignment(plan, keep).run();
}

}  // namespace fleet
