#include <algorithm>
#include <sstream>

#include "base/hash.h"
#include "base/text.h"
#include "exec/plan.h"
#include "ops/collective.h"
#include "store/store.h"

namespace fleet {
namespace {

std::string list_of(const std::vector<int>& ranks) {
  std::string text;
  for (const int rank : ranks) text += " " + std::to_string(rank);
  return text;
}

// Describes when a section runs, in words that mean the same on every rank.
std::string when_text(const Program& program, const Op& op) {
  Predicate when = program.sections()[op.section].when;
  std::string flag;
  if (when.flag != kNoFlag) {
    flag = (when.flag_value ? ", with flag " : ", without flag ") + program.flags()[when.flag];
    when.flag = kNoFlag;
  }
  return when.text() + flag;
}

// Writes one line per operation, using only data that all ranks share: no variable names and no
// group numbers.
class Writer {
 public:
  Writer(const Plan& plan, int rank) : plan_(plan), program_(plan.program), rank_(rank) {
    std::map<std::vector<int>, int> same;
    for (const RankGroup& group : program_.groups()) ordinals_.push_back(same[group.ranks]++);
  }

  CollectiveSequences write() {
    for (const PlannedOp& planned : plan_.ops) {
      if (is_collective(planned.op)) add(planned.op);
      for (const VarId id : planned.op.writes()) made_by_[id] = &planned;
    }
    add_memory();
    for (auto& [name, lines] : pairs_) {
      for (auto& [communicator, operations] : lines) {
        std::vector<std::string>& all = sequences_[name].operations;
        all.insert(all.end(), operations.begin(), operations.end());
      }
    }
    return std::move(sequences_);
  }

 private:
  void add(const Op& op) {
    const RankGroup& group = group_of(program_, op);
    FLEET_CHECK(std::count(group.ranks.begin(), group.ranks.end(), rank_) == 1,
                op.type() + ": rank " + std::to_string(rank_) + " is not in " + group.text());
    if (op.def->attributes.contains("peer")) return add_message(op, group);
    if (group.ranks.size() == 1) return;
    sequence_of(group).operations.push_back(collective(op));
  }

  CollectiveSequence& sequence_of(const RankGroup& group) {
    CollectiveSequence& sequence = sequences_["ranks" + list_of(group.ranks)];
    sequence.ranks = group.ranks;
    return sequence;
  }

  // Identifies one of the communicators over the same ranks.
  std::string communicator(const Op& op) const {
    const int64_t group = op.attributes.integer("communicator");
    const int inner_group_size = program_.groups()[group].inner_group_size;
    return "communicator " + std::to_string(ordinals_[group]) +
           (inner_group_size > 1 ? " in groups of " + std::to_string(inner_group_size) : "");
  }

  std::string tensor(VarId id) const {
    const Var& var = program_.var(id);
    return name_of(var.dtype) + var.shape.text() + ":" + plan_.vars[id].layout.text();
  }

  std::string collective(const Op& op) const {
    std::string line = op.type() + " on " + communicator(op);
    for (const auto& [name, value] : op.attributes.all()) {
      if (name != "communicator") line += ", " + name + "=" + text_of(value);
    }
    line += " (" + when_text(program_, op) + ")";
    const std::vector<VarId>* contiguous = contiguous_vars_of(op);
    const std::vector<VarId>& sent = contiguous ? *contiguous : op.inputs;
    const size_t begin = plan_.vars[sent[0]].offset;
    for (VarId id : sent) {
      line += " " + tensor(id);
      if (contiguous) line += "+" + std::to_string(plan_.vars[id].offset - begin);
      line += places(id);
    }
    return line;
  }

  // Integers that an operation computes from floats are positions in their memory
  // (ops/dgc_select.cc): they mean the same on ranks with equal memory layouts. A single one is a
  // flag that says whether all inspected values are finite.
  std::string places(VarId id) const {
    const auto made = made_by_.find(id);
    const Var& var = program_.var(id);
    if (is_floating(var.dtype) || var.shape.elements() == 1 || made == made_by_.end()) return "";
    std::string text;
    for (const VarId input : made->second->op.inputs) {
      if (input == kNoVar || !is_floating(program_.var(input).dtype)) continue;
      text += " of " + tensor(input);
    }
    return text;
  }

  void add_message(const Op& op, const RankGroup& group) {
    const int peer = group.ranks[op.attributes.integer("peer")];
    FLEET_CHECK(peer != rank_,
                op.type() + ": rank " + std::to_string(rank_) + " names itself as its peer");
    const bool sends = !op.inputs.empty();
    const int from = sends ? rank_ : peer, to = sends ? peer : rank_;
    const std::vector<int> both = {std::min(from, to), std::max(from, to)};
    const std::string name = "pair" + list_of(both);
    sequences_[name].ranks = both;
    // Messages of one communicator have one order; those of two communicators are independent.
    const std::string by = communicator(op) + " of ranks" + list_of(group.ranks);
    pairs_[name][by].push_back("from " + std::to_string(from) + " to " + std::to_string(to) +
                               " on " + by + " (" + when_text(program_, op) + ") " +
                               tensor(sends ? op.inputs[0] : op.outputs[0]));
  }

  // The ranks of a group allocate its memory together.
  void add_memory() {
    for (size_t group = 0; group < plan_.bucket_bytes.size(); ++group) {
      const RankGroup& ranks = program_.groups()[group];
      if (plan_.bucket_bytes[group] == 0 || ranks.ranks.size() == 1) continue;
      sequence_of(ranks).operations.push_back("memory of communicator " +
                                              std::to_string(ordinals_[group]) + ": " +
                                              std::to_string(plan_.bucket_bytes[group]));
    }
  }

  const Plan& plan_;
  const Program& program_;
  const int rank_;
  std::map<VarId, const PlannedOp*> made_by_;  // operations so far
  std::vector<int> ordinals_;                  // by group, among the groups of the same ranks
  CollectiveSequences sequences_;
  std::map<std::string, std::map<std::string, std::vector<std::string>>> pairs_;
};

std::string key_of(int rank) { return "plan/" + std::to_string(rank); }

// Parses lines "<hash> <name>".
std::map<std::string, uint64_t> parse(const std::string& text) {
  std::map<std::string, uint64_t> hashes;
  std::istringstream in(text);
  std::string name;
  for (uint64_t hash = 0; in >> hash >> std::ws && std::getline(in, name);) hashes[name] = hash;
  return hashes;
}

// The ranks of "ranks 0 1 2" or "pair 0 1".
std::vector<int> ranks_in(const std::string& name) {
  std::istringstream in(name);
  std::string kind;
  in >> kind;
  std::vector<int> ranks;
  for (int rank = 0; in >> rank;) ranks.push_back(rank);
  return ranks;
}

// The beginning of a long line, and the text around position `place`.
std::string excerpt(const std::string& line, size_t place) {
  constexpr size_t kHead = 80, kAround = 60;
  if (line.size() <= kHead + 2 * kAround) return line;
  const size_t from = std::max(kHead, place - std::min(place, kAround));
  const std::string part = from < line.size() ? line.substr(from, 2 * kAround) : "";
  return line.substr(0, kHead) + (from > kHead ? "..." : "") + part +
         (from + part.size() < line.size() ? "..." : "");
}

std::string first_difference(const std::string& name, const std::vector<std::string>& mine,
                             const std::vector<std::string>& theirs, int rank, int other) {
  size_t i = 0;
  while (i < mine.size() && i < theirs.size() && mine[i] == theirs[i]) ++i;
  size_t difference = 0;  // position within the operation's line
  if (i < mine.size() && i < theirs.size()) {
    difference =
        std::mismatch(mine[i].begin(), mine[i].end(), theirs[i].begin(), theirs[i].end()).first -
        mine[i].begin();
  }
  const auto at = [&](const std::vector<std::string>& lines) {
    return i < lines.size() ? "'" + excerpt(lines[i], difference) + "'" : std::string("nothing");
  };
  return name + ", operation " + std::to_string(i) + ": rank " + std::to_string(other) + " has " +
         at(theirs) + ", rank " + std::to_string(rank) + " " + at(mine);
}

}  // namespace

uint64_t CollectiveSequence::hash() const { return hash_text(join(operations, "\n")); }

CollectiveSequences Plan::collective_sequences(int rank) const {
  return Writer(*this, rank).write();
}

void compare_collective_sequences(const CollectiveSequences& mine, int rank, int world,
                                  Store& store, std::chrono::milliseconds timeout) {
  const auto operations_key = [](int of, const std::string& name) {
    return key_of(of) + "/" + name;
  };
  std::string hashes;
  for (const auto& [name, sequence] : mine) {
    store.set(operations_key(rank, name), join(sequence.operations, "\n"));
    hashes += std::to_string(sequence.hash()) + " " + name + "\n";
  }
  store.set(key_of(rank), hashes);
  const std::map<std::string, uint64_t> own = parse(hashes);
  for (int other = 0; other < world; ++other) {
    if (other == rank) continue;
    const std::map<std::string, uint64_t> theirs = parse(store.get(key_of(other), timeout));
    std::map<std::string, uint64_t> either = own;
    either.insert(theirs.begin(), theirs.end());
    for (const auto& [name, hash] : either) {
      const std::vector<int> ranks = ranks_in(name);
      const auto meets = [&](int who) { return std::count(ranks.begin(), ranks.end(), who) > 0; };
      if (!meets(rank) || !meets(other)) continue;
      const auto at = theirs.find(name);
      const auto here = own.find(name);
      if (at != theirs.end() && here != own.end() && at->second == here->second) continue;
      std::vector<std::string> their_lines, my_lines;
      if (at != theirs.end()) {
        their_lines = split(store.get(operations_key(other, name), timeout), '\n');
      }
      if (here != own.end()) my_lines = mine.at(name).operations;
      throw Error(ErrorCode::kUsage,
                  "rank " + std::to_string(other) + " has another plan than rank " +
                      std::to_string(rank) + ": " +
                      first_difference(name, my_lines, their_lines, rank, other),
                  {},
                  "start all ranks with the same job file, overrides and version of fleetrun, on "
                  "machines of one kind");
    }
  }
}

}  // namespace fleet
