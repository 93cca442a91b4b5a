#include "ps/block_store.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/reduce.h"

namespace fleet::ps {
namespace {

class ExecutorStore : public BlockStore {
 public:
  ExecutorStore(ServerProgram program, const ServedModel& model, const Placement& placement,
                int server, Device& device)
      : model_(model), placement_(placement), server_(server), vars_(std::move(program)) {
    const std::vector<int> own = placement.blocks_of(server);
    for (size_t i = 0; i < own.size(); ++i) position_[own[i]] = static_cast<int>(i);
    executor_ = std::make_shared<Executor>(
        plan_program(std::move(vars_.program), vars_.parts, {.device = &device}), device, nullptr);
    kept_.resize(model.kept.size());
    for (size_t i = 0; i < model.kept.size(); ++i) {
      if (placement.kept[i] != server) continue;
      kept_[i] = std::make_shared<std::vector<std::byte>>(model.kept[i].bytes());
    }
    const float no_rate = 0;
    const int32_t kept = 0;
    if (vars_.learning_rate != kNoVar) executor_->feed(vars_.learning_rate, std::span(&no_rate, 1));
    if (vars_.left_out != kNoVar) executor_->feed(vars_.left_out, std::span(&kept, 1));
    gradients_ = segments_of(model_, placement_, server_, kGradientSection);
  }

  void load(uint32_t sections, std::span<const std::byte> data) override {
    const std::vector<BlockSegment> segments = segments_of(model_, placement_, server_, sections);
    check_size(data.size(), bytes_of(segments));
    for (const BlockSegment& segment : segments) {
      const std::span<std::byte> memory = memory_of(segment);
      std::memcpy(memory.data(), data.data(), memory.size());
      data = data.subspan(segment.padded());
    }
  }

  std::vector<Bytes> read(uint32_t sections) const override {
    std::vector<Bytes> parts;
    for (const BlockSegment& segment : segments_of(model_, placement_, server_, sections)) {
      std::shared_ptr<const void> owner = executor_;
      if (segment.section == kKeptSection) owner = kept_[static_cast<size_t>(segment.item)];
      append_segment(parts, segment, {.data = memory_of(segment), .owner = owner});
    }
    return parts;
  }

  void add(std::span<const std::byte> gradients, bool first) override {
    check_size(gradients.size(), bytes_of(gradients_));
    for (const BlockSegment& segment : gradients_) {
      if (segment.dtype == DType::kFloat32) {
        const std::span<std::byte> sum = memory_of(segment);
        if (first) {
          std::memcpy(sum.data(), gradients.data(), sum.size());
        } else {
          add_up(segment, sum, {sum.data(), gradients.data()});
        }
      }
      gradients = gradients.subspan(segment.padded());
    }
  }

  bool has_low_types() const override {
    return std::ranges::any_of(
        gradients_, [](const BlockSegment& segment) { return segment.dtype != DType::kFloat32; });
  }

  void add_low_types(const std::vector<std::span<const std::byte>>& gradients) override {
    size_t at = 0;
    for (const BlockSegment& segment : gradients_) {
      if (segment.dtype != DType::kFloat32) {
        std::vector<const void*> inputs;
        for (const std::span<const std::byte> one : gradients) inputs.push_back(one.data() + at);
        add_up(segment, memory_of(segment), inputs);
      }
      at += segment.padded();
    }
  }

  bool shares_norms() const override { return vars_.norms_flag != kNoFlag; }

  Bytes norms() override {
    executor_->run({.step = step_, .flags = uint64_t{1} << vars_.norms_flag});
    executor_->synchronize();
    std::vector<double> own;
    for (const VarId parts : vars_.parts) {
      const std::vector<double> values = executor_->values<double>(parts);
      own.insert(own.end(), values.begin(), values.end());
    }
    return owned_bytes(own.data(), own.size() * sizeof(double));
  }

  void set_norms(std::span<const std::byte> parts) override {
    norms_.assign(parts.begin(), parts.end());
    size_t at = 0;
    std::vector<size_t> sizes(vars_.norms.size());
    for (const NormParts& one : norm_parts(model_, placement_)) {
      sizes[one.norm] += static_cast<size_t>(one.count) * sizeof(double);
    }
    check_size(parts.size(), std::accumulate(sizes.begin(), sizes.end(), size_t{0}));
    for (size_t n = 0; n < sizes.size(); ++n) {
      const auto own = std::span(norms_).subspan(at, sizes[n]);
      if (vars_.norms[n] != kNoVar) executor_->feed(vars_.norms[n], own);
      at += sizes[n];
    }
  }

  void add_to_values(std::span<const std::byte> differences) override {
    const std::vector<BlockSegment> segments =
        segments_of(model_, placement_, server_, kValueSection);
    check_size(differences.size(), bytes_of(segments));
    for (const BlockSegment& segment : segments) {
      const std::span<std::byte> value = memory_of(segment);
      add_up(segment, value, {value.data(), differences.data()});
      differences = differences.subspan(segment.padded());
    }
  }

  void update(float learning_rate, bool left_out) override {
    const int32_t found = left_out ? 1 : 0;
    if (vars_.learning_rate != kNoVar) {
      executor_->feed(vars_.learning_rate, std::span(&learning_rate, 1));
    }
    if (vars_.left_out != kNoVar) executor_->feed(vars_.left_out, std::span(&found, 1));
    executor_->run({.step = step_++});
    executor_->synchronize();
  }

 private:
  static void check_size(size_t given, size_t needed) {
    FLEET_CHECK(given == needed, "a message with " + std::to_string(given) +
                                     " bytes of blocks, which have " + std::to_string(needed));
  }

  static void add_up(const BlockSegment& segment, std::span<std::byte> sum,
                     const std::vector<const void*>& inputs) {
    void* out = sum.data();
    reduce_elements(segment.dtype, ReduceOp::kSum, &out, 1, inputs.data(),
                    static_cast<int>(inputs.size()), segment.bytes / size_of(segment.dtype));
  }

  VarId var_of(const BlockSegment& segment) const {
    if (segment.section == kCounterSection) return vars_.counters[segment.item];
    const ServerProgram::BlockVars& block = vars_.blocks[position_.at(segment.item)];
    switch (segment.section) {
      case kValueSection:
        return block.value;
      case kAverageSection:
        return block.average;
      case kStateSection:
        return block.states[segment.state];
      default:
        return block.gradient;
    }
  }

  std::span<std::byte> memory_of(const BlockSegment& segment) const {
    if (segment.section == kKeptSection) return *kept_[static_cast<size_t>(segment.item)];
    const Argument argument = executor_->argument(var_of(segment));
    FLEET_CHECK(argument.data && argument.bytes() == segment.bytes && argument.layout.is_plain(),
                "'" + segment.variable + "' is not in plain memory of the server");
    return {argument.as<std::byte>(), segment.bytes};
  }

  const ServedModel& model_;
  const Placement& placement_;
  const int server_;
  ServerProgram vars_;
  std::map<int, int> position_;  // in vars_.blocks, by index of the block
  std::shared_ptr<Executor> executor_;
  std::vector<std::shared_ptr<std::vector<std::byte>>> kept_;  // by index; null: another server's
  std::vector<BlockSegment> gradients_;
  std::vector<std::byte> norms_;  // the feeds'
  int64_t step_ = 0;
};

}  // namespace

std::unique_ptr<BlockStore> make_block_store(ServerProgram program, const ServedModel& model,
                                             const Placement& placement, int server,
                                             Device& device) {
  return std::make_unique<ExecutorStore>(std::move(program), model, placement, server, device);
}

}  // namespace fleet::ps
