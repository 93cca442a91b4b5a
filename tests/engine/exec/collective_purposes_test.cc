#include "exec/collective_purposes.h"

#include <gtest/gtest.h>

#include "comm/recorded_communicator.h"
#include "exec/executor.h"
#include "tests/engine/exec/recorder.h"

namespace fleet {
namespace {

TEST(CollectivePurposes, BucketsAreCounted_OtherTensorsNamed) {
  Program program;
  const SectionId section = program.add_section("always", {});
  const VarId w = program.parameter("w", {4}, {}), v = program.parameter("v", {4}, {});
  const VarId a = program.temporary("w@grad"), b = program.temporary("v@grad");
  for (const VarId id : {a, b}) program.var(id).shape = {4};
  program.set_gradient(w, a);
  program.set_gradient(v, b);
  program.add_group({.name = "all", .ranks = {0, 1}});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  CollectivePurposes purposes(program);
  const auto purpose = [&](const std::string& type, std::vector<VarId> vars) {
    return std::string(purposes.next(program.make_op(section, type, vars, vars)).view());
  };
  EXPECT_EQ(purpose("all_reduce", {a}), "bucket 0");
  EXPECT_EQ(purpose("all_reduce", {x}), "x");
  EXPECT_EQ(purpose("all_reduce", {a, b}), "bucket 1");
  EXPECT_EQ(purpose("reduce", {a, b}), "bucket 0");
}

struct Last : CollectiveListener {
  Last() { CollectiveLog::of_process().set_listener(this); }
  ~Last() override { CollectiveLog::of_process().set_listener(nullptr); }
  void issued(const CollectiveRecord& call) override { last = call; }
  CollectiveRecord last;
};

TEST(Executor, CollectiveOfAPlan_IsRecordedWithItsVariable) {
  Program program;
  const SectionId section = program.add_section("always", {});
  const VarId x = program.feed("x", DType::kFloat32, {100});
  const VarId y = program.emit(section, "relu", {x}, {}, "activations")[0];
  program.add_group({.name = "all", .ranks = {0, 1}});
  program.ops().push_back(program.make_op(section, "all_reduce", {y}, {y}));
  HostDevice device;
  std::vector<int> order;
  RecordedCommunicator comm(std::make_unique<Recorder>(0, &order), "all", {0, 1}, false);
  Executor executor(plan_program(program, {y}), device, &comm);
  Last heard;
  executor.run({});
  executor.run({});
  EXPECT_EQ(order.size(), 2u);
  EXPECT_EQ(heard.last.sequence, 2);
  EXPECT_EQ(heard.last.bytes, 400);
  EXPECT_EQ(heard.last.purpose.view(), program.var(y).name);
}

}  // namespace
}  // namespace fleet
