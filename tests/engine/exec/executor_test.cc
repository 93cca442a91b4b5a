#include "exec/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

#include "tensor/host.h"

// Counts every allocation of this process, so that a test can say that a step makes none.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
namespace {
std::atomic<int64_t> allocations{0};
}
void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace fleet {
namespace {

// x -> relu -> ... -> relu, `depth` of them.
struct Chain {
  Program program;
  VarId x, y;
};

Chain chain(int depth, const Shape& shape) {
  Chain chain;
  const SectionId forward = chain.program.add_section("forward", {});
  chain.x = chain.y = chain.program.feed("x", DType::kFloat32, shape);
  for (int i = 0; i < depth; ++i) chain.y = chain.program.emit(forward, "relu", {chain.y})[0];
  return chain;
}

TEST(Executor, Chain_ComputesAndReusesMemory) {
  Chain net = chain(6, {4, 1000});
  HostDevice device;
  Executor executor(plan_program(net.program, {net.y}), device, nullptr);
  std::vector<float> x(4000);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) - 2000.f;
  executor.feed(net.x, x);
  executor.run({});
  const std::vector<float> y = executor.values<float>(net.y);
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], std::max(x[i], 0.f));
  EXPECT_LE(executor.plan().arena_bytes, 16000u + 64);  // relu works in place
}

// A span of another size would read or write beyond the caller's memory.
TEST(Executor, SpanOfAnotherSize_IsABugThatNamesBothSizes) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  const VarId w = program.parameter("w", {4}, {});
  const VarId y = program.emit(section, "elementwise_add", {x, w})[0];
  HostDevice device;
  Executor executor(plan_program(program, {y}), device, nullptr);
  std::vector<float> right(4), small(3);
  std::vector<double> wide(4);
  const auto expect_refused = [](const std::string& what, const std::function<void()>& call) {
    try {
      call();
      ADD_FAILURE() << what << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInternal);
      EXPECT_NE(std::string(error.what()).find(what + " bytes were given, the variable has 16"),
                std::string::npos)
          << error.what();
    }
  };
  expect_refused("feed of 'x': 12", [&] { executor.feed(x, small); });
  expect_refused("feed of 'x': 32", [&] { executor.feed(x, wide); });
  expect_refused("write of 'w': 12", [&] { executor.write(w, small); });
  expect_refused("read of 'elementwise_add.out': 12", [&] { executor.read(y, small); });
  expect_refused("copy_out of 'w': 32", [&] { executor.copy_out(w, wide); });
  expect_refused("read of 'elementwise_add.out': 32", [&] { executor.values<int64_t>(y); });
  executor.feed(x, right);
  executor.write(w, std::as_bytes(std::span(right)));
  executor.read(y, std::as_writable_bytes(std::span(right)));
}

TEST(Executor, Step_AllocatesNothing) {
  Chain net = chain(4, {64, 64});
  HostDevice device;
  Executor executor(plan_program(net.program, {net.y}), device, nullptr);
  const std::vector<float> x(64 * 64, 1.f);
  executor.feed(net.x, x);
  executor.run({.step = 0});
  const int64_t before = allocations;
  for (int step = 1; step < 4; ++step) {
    executor.feed(net.x, x);
    executor.run({.step = step});
    executor.synchronize();
  }
  EXPECT_EQ(allocations - before, 0);
}

TEST(Executor, Sections_RunWhenTheirPredicateHolds) {
  Program program;
  const SectionId always = program.add_section("always", {.training = true, .evaluation = true});
  const SectionId fetch = program.add_section("fetch", {.fetch_only = true});
  const SectionId third = program.add_section("third", {.every = 3});
  const VarId x = program.feed("x", DType::kFloat32, {1});
  const VarId a = program.emit(always, "relu", {x})[0];
  const VarId b = program.emit(fetch, "relu", {a})[0];
  const VarId c = program.emit(third, "relu", {a})[0];
  HostDevice device;
  Executor executor(plan_program(program, {a, b, c}), device, nullptr);
  const auto after = [&](float value, const StepInfo& info) {
    executor.feed(x, std::span(&value, 1));
    executor.run(info);
    return std::vector<float>{executor.values<float>(a)[0], executor.values<float>(b)[0],
                              executor.values<float>(c)[0]};
  };
  EXPECT_EQ(after(1, {.step = 0}), (std::vector<float>{1, 0, 0}));
  EXPECT_EQ(after(2, {.step = 1, .fetch = true}), (std::vector<float>{2, 2, 0}));
  EXPECT_EQ(after(3, {.step = 2}), (std::vector<float>{3, 2, 3}));
  EXPECT_EQ(after(4, {.evaluate = true}), (std::vector<float>{4, 2, 3}));
}

TEST(Executor, Initialize_DependsOnSeedAndNameOnly) {
  const auto values = [](const std::string& name, uint64_t seed, bool other_first) {
    Program program;
    program.add_section("forward", {});
    if (other_first) program.parameter("other", {3}, {Init::kUniform, -1, 1});
    const VarId p = program.parameter(name, {500}, {Init::kNormal, 1.0, 2.0});
    HostDevice device;
    Executor executor(plan_program(program, {}), device, nullptr);
    executor.initialize(seed);
    return executor.values<float>(p);
  };
  EXPECT_EQ(values("w", 1, false), values("w", 1, true));
  EXPECT_NE(values("w", 1, false), values("w", 2, false));
  EXPECT_NE(values("w", 1, false), values("v", 1, false));
  double mean = 0;
  for (float value : values("w", 1, false)) mean += value / 500;
  EXPECT_NEAR(mean, 1.0, 0.3);
}

TEST(Plan, MissingKernel_IsOneClearError) {
  Chain net = chain(1, {2});
  try {
    plan_program(net.program, {}, {.backend = "tpu", .initial_layouts = {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), "relu: no tpu kernel");
  }
}

}  // namespace
}  // namespace fleet
