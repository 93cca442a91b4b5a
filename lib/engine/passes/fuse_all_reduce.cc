// fuse_all_reduce: sums the gradients over the ranks, several per allreduce. Each allreduce follows
// the operation that computes the last of its gradients and runs on its own stream, in parallel
// with the rest of the backward pass. Several communicators take turns, each with a stream.
#include <set>

#include "base/log.h"
#include "passes/gradients.h"
#include "passes/pass.h"

namespace fleet {
namespace {

std::set<std::string> names_in(const Attributes& options, const char* option) {
  const std::vector<std::string>& names = options.texts(option);
  return {names.begin(), names.end()};
}

class FuseAllReduce : public Pass {
 public:
  explicit FuseAllReduce(const Attributes& options)
      : fuse_(options.boolean("fuse")),
        limits_{.megabytes = options.number("megabytes"),
                .count = options.integer("count"),
                .exact_count = options.integer("exact_count"),
                .last_megabytes = options.number("last_megabytes")},
        communicators_(options.integer("communicators")),
        inner_group_size_(static_cast<int>(options.integer("inner_group_size"))),
        one_after_another_(options.boolean("one_after_another")),
        section_(options.text("section")),
        only_(names_in(options, "only")),
        without_(names_in(options, "without")) {
    FLEET_CHECK(communicators_ >= 1, "fuse_all_reduce needs at least one communicator");
  }

  bool run(Program& program, const PassContext& context) override {
    if (context.data_parallel_degree() <= 1) return false;
    const std::vector<Gradient> gradients = find_gradients(program, [&](const Var& parameter) {
      return (only_.empty() || only_.contains(parameter.name)) &&
             !without_.contains(parameter.name);
    });
    if (gradients.empty()) return false;
    const auto buckets = fuse_ ? group_gradients(sizes_of(program, gradients), limits_)
                               : group_gradients(sizes_of(program, gradients), {.exact_count = 1});
    insert(program, gradients, buckets, add_groups(program, context));
    if (fuse_) {
      spdlog::info(
          "Find all_reduce operators: {}. To make the speed faster, some all_reduce ops are fused "
          "during training, after fusion, the number of all_reduce ops is {}.",
          gradients.size(), buckets.size());
    }
    return true;
  }

 private:
  // One group per communicator, all over the same ranks.
  std::vector<GroupId> add_groups(Program& program, const PassContext& context) const {
    std::vector<GroupId> groups;
    for (int64_t i = 0; i < communicators_; ++i) {
      groups.push_back(program.add_group({.name = "data parallel",
                                          .ranks = context.data_parallel_ranks(),
                                          .inner_group_size = inner_group_size_}));
    }
    return groups;
  }

  // The allreduce of bucket `number`.
  Op all_reduce(Program& program, SectionId section, const std::vector<VarId>& vars, size_t number,
                const std::vector<GroupId>& groups) const {
    const size_t turn = number % groups.size();
    Op op = program.make_op(section, "all_reduce", vars, vars,
                            {{"op", std::string("sum")},
                             {"communicator", int64_t{groups[turn]}},
                             {"after_previous", one_after_another_ && communicators_ > 1}});
    op.stream = kCommunicationStream + static_cast<int>(turn);
    return op;
  }

  void insert(Program& program, const std::vector<Gradient>& gradients,
              const std::vector<std::vector<int>>& buckets,
              const std::vector<GroupId>& groups) const {
    std::vector<Op> ops;
    size_t next = 0;
    for (size_t i = 0; i < program.ops().size(); ++i) {
      const SectionId section =
          section_.empty() ? program.ops()[i].section : program.find_section(section_);
      ops.push_back(std::move(program.ops()[i]));
      for (; next < buckets.size(); ++next) {
        const std::vector<int>& bucket = buckets[next];
        if (gradients[bucket.back()].computed_by != static_cast<int>(i)) break;
        std::vector<VarId> vars;
        for (int index : bucket) vars.push_back(gradients[index].var);
        ops.push_back(all_reduce(program, section, vars, next, groups));
      }
    }
    FLEET_CHECK(next == buckets.size(), "a bucket of gradients was not inserted");
    program.ops() = std::move(ops);
  }

  bool fuse_;
  BucketLimits limits_;
  int64_t communicators_;
  int inner_group_size_;
  bool one_after_another_;
  std::string section_;
  std::set<std::string> only_, without_;  // parameters
};

}  // namespace

FLEET_PASS(fuse_all_reduce) {
  def.help = "sums the gradients over the ranks, several per allreduce";
  def.options = {
      {"fuse", true},
      {"megabytes", 32.0},
      {"count", int64_t{50}},
      {"exact_count", int64_t{0}},
      {"last_megabytes", 0.0},
      {"communicators", int64_t{1}},
      {"inner_group_size", int64_t{1}},  // size of the groups that sum among themselves first
      {"one_after_another", true},
      // section of the allreduces; empty: that of the operation that computes the gradients
      {"section", std::string()},
      // names of parameters: include only these (empty: all); exclude these
      {"only", std::vector<std::string>()},
      {"without", std::vector<std::string>()}};
  def.create = create_pass<FuseAllReduce>;
}

}  // namespace fleet
