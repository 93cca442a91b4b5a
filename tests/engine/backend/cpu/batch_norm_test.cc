// How exact the CPU's batch normalization is, and that its results do not depend on the threads.
#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "exec/executor.h"
#include "tensor/host.h"

namespace fleet {
namespace {

Layout blocked(const Shape& x, int64_t block) {
  const int64_t groups = (x[1] + block - 1) / block, pixels = x[2] * x[3];
  return Layout::blocked({x[0], groups * block, x[2], x[3]},
                         {groups * pixels * block, pixels * block, x[3] * block, block},
                         {{1, block}});
}

// A batch normalization in training and its gradient.
class BothDirections {
 public:
  // x: far from 0. dy: of one sign, so that the sums grow with the number of values.
  BothDirections(const Shape& shape, const Layout& layout) {
    const Shape channels{shape[1]};
    Program program;
    const SectionId section = program.add_section("step", {});
    x_ = program.state("x", shape, {.kind = Init::kUniform, .a = 4, .b = 6});
    dy_ = program.state("dy", shape, {.kind = Init::kUniform, .a = 0, .b = 1});
    const VarId scale = program.state("scale", channels, {.a = 1}),
                bias = program.state("bias", channels, {});
    const VarId mean = program.state("mean", channels, {}),
                variance = program.state("variance", channels, {.a = 1});
    const std::vector<VarId> forward =
        program.emit(section, "batch_norm", {x_, scale, bias, mean, variance});
    const std::vector<VarId> backward =
        program.emit(section, "batch_norm_grad", {x_, scale, forward[3], forward[4], kNoVar, dy_});
    kept_ = {forward[0], forward[3], forward[4], backward[0], backward[1], backward[2]};
    executor_ = std::make_unique<Executor>(
        plan_program(std::move(program), kept_,
                     {.initial_layouts = {{x_, layout}, {dy_, layout}}, .device = &device_}),
        device_, nullptr);
  }

  // y, mean, variance, dx, dscale, dbias
  std::vector<std::vector<float>> run() {
    executor_->initialize(1);
    executor_->run({});
    std::vector<std::vector<float>> results;
    for (const VarId id : kept_) results.push_back(executor_->values<float>(id));
    return results;
  }
  std::vector<float> x() { return executor_->values<float>(x_); }
  std::vector<float> dy() { return executor_->values<float>(dy_); }

 private:
  HostDevice device_;
  VarId x_, dy_;
  std::vector<VarId> kept_;
  std::unique_ptr<Executor> executor_;
};

struct Sums {
  double mean = 0, variance = 0, dscale = 0, dbias = 0;
};

Sums in_double(const Shape& shape, int64_t channel, const std::vector<float>& x,
               const std::vector<float>& dy) {
  const int64_t pixels = shape[2] * shape[3];
  const double count = static_cast<double>(shape[0] * pixels);
  const auto each = [&](auto body) {
    for (int64_t n = 0; n < shape[0]; ++n) {
      for (int64_t p = 0; p < pixels; ++p) body((n * shape[1] + channel) * pixels + p);
    }
  };
  Sums sums;
  each([&](int64_t k) { sums.mean += x[k] / count; });
  each([&](int64_t k) { sums.variance += std::pow(x[k] - sums.mean, 2) / count; });
  each([&](int64_t k) {
    sums.dscale += dy[k] * (x[k] - sums.mean) / std::sqrt(sums.variance + 1e-5);
    sums.dbias += dy[k];
  });
  return sums;
}

// Added up in float32, 131,072 values of one sign lose two digits of seven.
TEST(CpuBatchNorm, ManyValues_KeepFloat32sPrecision) {
  const Shape shape{32, 32, 64, 64};
  std::vector<Sums> exact;
  for (const Layout& layout : {Layout::plain(shape), blocked(shape, 8), blocked(shape, 16),
                               Layout::channels_last(shape)}) {
    BothDirections norm(shape, layout);
    const std::vector<std::vector<float>> got = norm.run();
    if (exact.empty()) {  // the same values in each layout
      const std::vector<float> x = norm.x(), dy = norm.dy();
      for (int64_t c = 0; c < shape[1]; ++c) exact.push_back(in_double(shape, c, x, dy));
    }
    for (int64_t c = 0; c < shape[1]; ++c) {
      EXPECT_NEAR(got[1][c], exact[c].mean, 2e-7 * exact[c].mean) << layout.text();
      EXPECT_NEAR(got[2][c], exact[c].variance, 4e-7 * exact[c].variance) << layout.text();
      EXPECT_NEAR(got[5][c], exact[c].dbias, 2e-7 * exact[c].dbias) << layout.text();
      // Its terms have both signs. The rounding of the mean alone may cost 4.2e-7 of dbias.
      EXPECT_NEAR(got[4][c], exact[c].dscale, 1e-6 * exact[c].dbias) << layout.text();
    }
  }
}

TEST(CpuBatchNorm, AnyNumberOfThreads_ComputesTheSameBits) {
  const int before = omp_get_max_threads();
  // Runs of one tile, of a part of a block, and of several blocks.
  for (const Shape& shape : {Shape{70, 32, 1, 1}, Shape{9, 48, 4, 5}, Shape{3, 16, 40, 40}}) {
    for (const Layout& layout :
         {Layout::plain(shape), blocked(shape, 16), Layout::channels_last(shape)}) {
      BothDirections norm(shape, layout);
      std::vector<std::vector<float>> expected;
      for (const int threads : {1, 2, 3, 5}) {
        omp_set_num_threads(threads);
        const std::vector<std::vector<float>> got = norm.run();
        if (threads == 1) expected = got;
        EXPECT_EQ(got, expected) << shape.text() << " " << layout.text() << " " << threads;
      }
      omp_set_num_threads(before);
    }
  }
}

}  // namespace
}  // namespace fleet
