// Gradients that sum over tokens: the same bits on any number of threads.
#include <gtest/gtest.h>
#include <omp.h>

#include "exec/executor.h"
#include "tensor/host.h"

namespace fleet {
namespace {

constexpr int64_t kTokens = 777, kWidth = 96, kWords = 501;

// The values of all outputs of an operation whose inputs are numbered from 0 to 1, or ids.
struct ThreadsCase {
  std::string type;
  std::vector<Shape> inputs;
  Attributes attributes = {};
  bool takes_ids = false;  // input 0

  std::vector<float> run() const {
    Program program;
    const SectionId section = program.add_section("forward", {});
    std::vector<VarId> vars;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const DType dtype = takes_ids && i == 0 ? DType::kInt64 : DType::kFloat32;
      vars.push_back(program.feed("x" + std::to_string(i), dtype, inputs[i]));
    }
    const std::vector<VarId> outputs = program.emit(section, type, vars, attributes);
    HostDevice device;
    Executor executor(plan_program(program, outputs), device, nullptr);
    for (size_t i = 0; i < vars.size(); ++i) write(executor, vars[i], takes_ids && i == 0);
    executor.run({});
    std::vector<float> all;
    for (const VarId id : outputs) {
      const std::vector<float> values = executor.values<float>(id);
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }

 private:
  static void write(Executor& executor, VarId id, bool ids) {
    const int64_t count = executor.program().var(id).shape.elements();
    std::vector<int64_t> words;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      words.push_back(i * i % 7 == 0 ? 3 : i * 7919 % kWords);
      values.push_back(static_cast<float>(i * 7919 % 10007) / 10007);
    }
    if (ids) return executor.write(id, words);
    executor.write(id, values);
  }
};

TEST(TextOpsOnCpu, AnyNumberOfThreads_GivesTheSameBits) {
  const Shape tokens{kTokens, kWidth};
  const std::vector<ThreadsCase> cases = {
      {"rms_norm_grad", {tokens, {kWidth}, {kTokens}, tokens, tokens}},
      {"layer_norm_grad", {tokens, {kWidth}, {kTokens}, {kTokens}, tokens, tokens}},
      {"add_layer_norm", {tokens, tokens, {kWidth}, {kWidth}}},
      {"embedding_grad", {{kTokens}, tokens}, {{"rows", kWords}}, true},
      {"swiglu_grad", {{kTokens, 2 * kWidth}, tokens}},
  };
  const int before = omp_get_max_threads();
  for (const ThreadsCase& one : cases) {
    omp_set_num_threads(1);
    const std::vector<float> expected = one.run();
    for (const int threads : {2, 3, 7}) {
      omp_set_num_threads(threads);
      EXPECT_EQ(one.run(), expected) << one.type << " with " << threads << " threads";
    }
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace fleet
