#include "exec/memory_assignment.h"

#include <algorithm>
#include <map>

namespace fleet {
namespace {

// Variables that share one piece of the arena because each takes over its predecessor in place.
struct Piece {
  int first = 0, last = 0;  // operations between which it lives, both included
  size_t bytes = 0, offset = 0;
  std::vector<VarId> vars;
};

class Assignment {
 public:
  Assignment(Plan& plan, const std::vector<VarId>& keep) : plan_(plan) {
    const int count = plan.program.var_count();
    first_.assign(count, -1);
    last_.assign(count, -1);
    kept_.assign(count, false);
    for (VarId id : keep) kept_[id] = true;
  }

  void run() {
    find_lifetimes();
    place_buckets();
    place_persistent();
    make_pieces();
    place_pieces();
    for (const PlannedOp& planned : plan_.ops) {
      std::vector<size_t>& bytes = plan_.workspace_bytes;
      const size_t stream = planned.op.stream;
      if (bytes.size() <= stream) bytes.resize(stream + 1);
      bytes[stream] = std::max(bytes[stream], aligned(planned.workspace));
    }
  }

 private:
  // The operation of stream 0 behind which this one surely runs: it waits for what wrote its
  // inputs.
  int certainly_after(int index, std::vector<int>& written) const {
    const Op& op = plan_.ops[index].op;
    int after = op.stream == 0 ? index : 0;
    if (op.stream != 0) {
      for (VarId id : op.inputs) {
        if (id != kNoVar) after = std::max(after, written[id]);
      }
    }
    for (VarId id : op.outputs) {
      if (id != kNoVar) written[id] = after;
    }
    return after;
  }

  void find_lifetimes() {
    const int count = static_cast<int>(plan_.ops.size());
    std::vector<int> written(plan_.program.var_count(), 0);
    for (int i = 0; i < count; ++i) {
      const Op& op = plan_.ops[i].op;
      const int after = certainly_after(i, written);
      for (const std::vector<VarId>* side : {&op.inputs, &op.outputs}) {
        for (VarId id : *side) {
          if (id == kNoVar) continue;
          if (first_[id] < 0) first_[id] = after;
          // Another stream may lag behind: what it touches lives to the end.
          last_[id] = op.stream == 0 ? std::max(last_[id], i) : count;
        }
      }
    }
  }

  void place_buckets() {
    for (const PlannedOp& planned : plan_.ops) {
      if (!planned.op.def->contiguous_inputs) continue;
      for (VarId id : planned.op.inputs) {
        PlannedVar& var = plan_.vars[id];
        FLEET_CHECK(var.region != Region::kBucket, "a variable in two buckets");
        var.region = Region::kBucket;
        var.offset = plan_.bucket_bytes;
        plan_.bucket_bytes += aligned(var.bytes);
      }
    }
  }

  void place_persistent() {
    for (VarId id = 0; id < plan_.program.var_count(); ++id) {
      PlannedVar& var = plan_.vars[id];
      if (!var.used || var.region == Region::kBucket) continue;
      if (plan_.program.var(id).kind == VarKind::kTemporary && !kept_[id]) continue;
      var.region = Region::kPersistent;
      var.offset = plan_.persistent_bytes;
      plan_.persistent_bytes += aligned(var.bytes);
    }
  }

  bool in_arena(VarId id) const {
    return id != kNoVar && plan_.vars[id].used && plan_.vars[id].region == Region::kArena;
  }

  void make_pieces() {
    for (size_t i = 0; i < plan_.ops.size(); ++i) {
      const Op& op = plan_.ops[i].op;
      for (VarId id : op.outputs) {
        if (!in_arena(id) || piece_of_.contains(id)) continue;
        if (join_inplace(op, id, static_cast<int>(i))) continue;
        piece_of_[id] = pieces_.size();
        pieces_.push_back({first_[id], last_[id], aligned(plan_.vars[id].bytes), 0, {id}});
      }
    }
  }

  // The output takes over an input's memory where the operation allows it and nobody reads that
  // input later.
  bool join_inplace(const Op& op, VarId output, int at) {
    for (const auto& [in, out] : op.def->inplace) {
      if (out >= static_cast<int>(op.outputs.size()) || op.outputs[out] != output) continue;
      const VarId input = in < static_cast<int>(op.inputs.size()) ? op.inputs[in] : kNoVar;
      if (!in_arena(input) || last_[input] != at || !piece_of_.contains(input)) continue;
      if (plan_.vars[input].bytes != plan_.vars[output].bytes) continue;
      if (std::count(op.inputs.begin(), op.inputs.end(), input) != 1) continue;
      Piece& piece = pieces_[piece_of_[input]];
      if (piece.last != at) continue;
      piece.last = last_[output];
      piece.vars.push_back(output);
      piece_of_[output] = piece_of_[input];
      return true;
    }
    return false;
  }

  // Largest first, each at the lowest offset free during its life.
  void place_pieces() {
    std::vector<Piece*> order;
    for (Piece& piece : pieces_) order.push_back(&piece);
    std::stable_sort(order.begin(), order.end(),
                     [](const Piece* a, const Piece* b) { return a->bytes > b->bytes; });
    std::vector<const Piece*> placed;  // by offset
    for (Piece* piece : order) {
      size_t offset = 0;
      for (const Piece* other : placed) {
        if (other->last < piece->first || other->first > piece->last) continue;
        if (offset + piece->bytes <= other->offset) break;
        offset = std::max(offset, other->offset + other->bytes);
      }
      piece->offset = offset;
      plan_.arena_bytes = std::max(plan_.arena_bytes, offset + piece->bytes);
      placed.insert(
          std::upper_bound(placed.begin(), placed.end(), piece,
                           [](const Piece* a, const Piece* b) { return a->offset < b->offset; }),
          piece);
      for (VarId id : piece->vars) plan_.vars[id].offset = offset;
    }
  }

  Plan& plan_;
  std::vector<int> first_, last_;
  std::vector<bool> kept_;
  std::map<VarId, size_t> piece_of_;
  std::vector<Piece> pieces_;
};

}  // namespace

void assign_memory(Plan& plan, const std::vector<VarId>& keep) { Assignment(plan, keep).run(); }

}  // namespace fleet
