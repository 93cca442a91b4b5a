#include "optim/row_update.h"

#include <gmock/gmock.h>

#include "tests/engine/optim/rules.h"
#include "tests/errors.h"

namespace fleet {
namespace {

constexpr int64_t kRows = 40, kSize = 9, kIds = 24;

// A weight that three updates change, from gradients of rows or from whole ones.
class EmbeddingUpdates {
 public:
  EmbeddingUpdates(const std::string& json, bool sparse) {
    Program program;
    const SectionId section = program.add_section("optimize", {});
    rate_ = program.feed("learning_rate", DType::kFloat32, {1});
    ids_ = program.feed("ids", DType::kInt64, {kIds});
    dy_ = program.feed("dy", DType::kFloat32, {kIds, kSize});
    scaling_ = {.found_inf = program.feed("found_inf", DType::kInt32, {1}),
                .unscale = program.feed("unscale", DType::kFloat32, {1})};
    const VarId weight = program.parameter("weight", {kRows, kSize}, {Init::kUniform, -1, 1});
    const std::vector<VarId> made = program.emit(
        section, sparse ? "embedding_grad_rows" : "embedding_grad", {ids_, dy_}, {{"rows", kRows}});
    program.set_gradient(weight, made.back());
    program.var(made.back()).gradient_of = kNoVar;
    append_updates(program, section, {weight}, rate_, optimizer_settings(json), scaling_);
    executor_ = std::make_unique<Executor>(plan_program(program, {}, op_plan_options()),
                                           op_device(), nullptr);
    executor_->initialize(4);
    feed(rate_, 0.1f);
    feed(scaling_.unscale, 0.5f);
  }

  void step(int number, int32_t found_inf = 0) {
    std::vector<int64_t> ids(kIds);
    std::vector<float> dy(kIds * kSize);
    for (int64_t i = 0; i < kIds; ++i) ids[i] = (i * i + 3 * number) % kRows;
    for (size_t i = 0; i < dy.size(); ++i) {
      dy[i] = 1.0f / static_cast<float>(i % 37 + number + 1) - 0.1f;
    }
    executor_->feed(ids_, ids);
    executor_->feed(dy_, dy);
    feed(scaling_.found_inf, found_inf);
    executor_->run({.step = number});
    executor_->synchronize();
  }

  std::map<std::string, std::vector<float>> values() {
    std::map<std::string, std::vector<float>> all;
    for (VarId id = 0; id < executor_->program().var_count(); ++id) {
      const Var& var = executor_->program().var(id);
      if (is_saved(var) && var.dtype == DType::kFloat32) {
        all[var.name] = executor_->values<float>(id);
      }
    }
    return all;
  }

 private:
  template <typename T>
  void feed(VarId id, T value) {
    executor_->feed(id, std::span(&value, 1));
    executor_->synchronize();
  }

  VarId rate_ = kNoVar, ids_ = kNoVar, dy_ = kNoVar;
  GradientScaling scaling_;
  std::unique_ptr<Executor> executor_;
};

TEST(RowUpdate, OfRules_GivesTheBitsOfTheWholeUpdate) {
  for (const char* rule : {R"({"name": "sgd"})", R"({"name": "adagrad", "lr_decay": 0.1})",
                           R"({"name": "adagrad", "initial_accumulator_value": 0.5})",
                           R"({"name": "sgd", "clip": "value", "clip_value": 0.05})"}) {
    EmbeddingUpdates whole(rule, false), sparse(rule, true);
    const auto before = sparse.values();
    for (int i = 0; i < 3; ++i) {
      whole.step(i);
      sparse.step(i);
    }
    EXPECT_EQ(whole.values(), sparse.values()) << rule;
    EXPECT_NE(sparse.values(), before) << rule;
  }
}

TEST(RowUpdate, Overflow_ChangesNothing) {
  for (const char* rule : {R"({"name": "sgd"})", R"({"name": "adagrad"})"}) {
    EmbeddingUpdates updates(rule, true);
    const auto before = updates.values();
    updates.step(0, 1);
    EXPECT_EQ(updates.values(), before) << rule;
  }
}

TEST(RowUpdate, RulesThatChangeAllRows_AreRefused) {
  for (const std::string& name : optimizer_registry().names()) {
    const std::string plain = R"({"name": ")" + name + "\"}";
    const bool has_rows = name == "sgd" || name == "adagrad";
    const std::string rule =
        has_rows ? R"({"name": ")" + name + R"(", "weight_decay": 0.1})" : plain;
    EXPECT_THAT(thrown_by([&] { EmbeddingUpdates(rule, true); }),
                IsUsageError("the sparse embedding 'weight'"))
        << rule;
  }
}

}  // namespace
}  // namespace fleet
