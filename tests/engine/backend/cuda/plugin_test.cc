// The seam between the engine and the CUDA module: loading it, choosing a device, and one
// operation.
#include <gmock/gmock.h>

#include <cmath>

#include "exec/backend.h"
#include "exec/kernel.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;

bool plugin_was_built() { return has_plugin("cuda"); }

TEST(ChooseDevice, Cpu_IsTheHostWithoutANote) {
  const DeviceChoice choice = choose_device("cpu", 0);
  EXPECT_EQ(choice.device->backend(), "cpu");
  EXPECT_EQ(choice.note, "");
}

TEST(ChooseDevice, CudaWhereItCannotRun_IsTheCpuAndSaysWhyInOneLine) {
  const DeviceChoice choice = choose_device("cuda", 0);
  if (choice.device->backend() == "cuda") GTEST_SKIP() << "this machine has a GPU";
  EXPECT_EQ(choice.device->backend(), "cpu");
  EXPECT_THAT(choice.note, HasSubstr("the CPU is used: "));
  EXPECT_EQ(choice.note.find('\n'), std::string::npos);
  EXPECT_NE(choice.reason, "");
  EXPECT_THAT(choice.note, EndsWith(choice.reason));
  EXPECT_EQ(choice.missing, "cuda");
  // The kernels are here without a GPU: Plans can be made of them.
  EXPECT_EQ(has_backend("cuda"), plugin_was_built());
  if (plugin_was_built()) {
    EXPECT_THAT(choice.note, AnyOf(HasSubstr("driver"), HasSubstr("device"), HasSubstr("GPU")));
  } else {
    EXPECT_THAT(choice.note, HasSubstr("this build has no cuda backend"));
  }
}

TEST(ChooseDevice, AutoWithoutGpu_SaysWhyInOneLine) {
  const DeviceChoice choice = choose_device("auto", 0);
  if (choice.device->backend() == "cuda") GTEST_SKIP() << "this machine has a GPU";
  EXPECT_THAT(choice.note, HasSubstr("training runs on the CPU: "));
  EXPECT_EQ(choice.missing, "");  // nobody asked for a GPU
  EXPECT_EQ(choice.unusable, plugin_was_built());
  EXPECT_EQ(choice.note.find('\n'), std::string::npos);
}

TEST(ChooseDevice, UnknownName_SuggestsTheNearest) {
  try {
    choose_device("cudda", 0);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'cuda'?"));
  }
}

// One relu with its gradient, as a Program, to look kernels up with.
struct ReluProgram {
  Program program;
  VarId x, y, dy, dx;
  ReluProgram() {
    const SectionId section = program.add_section("forward", {});
    x = program.feed("x", DType::kFloat32, {5});
    dy = program.feed("dy", DType::kFloat32, {5});
    y = program.emit(section, "relu", {x})[0];
    dx = program.emit(section, "relu_grad", {y, dy})[0];
  }
};

TEST(CudaPlugin, Loaded_RegistersItsKernels) {
  if (!plugin_was_built()) GTEST_SKIP() << "this build has no CUDA backend (nvcc was not found)";
  choose_device("cuda", 0);
  ReluProgram relu;
  for (const Op& op : relu.program.ops()) {
    EXPECT_TRUE(find_kernel("cuda", relu.program, op).create) << op.type();
  }
}

TEST(CudaDevice, ReluAndItsGradient_AreAsOnTheHost) {
  const DeviceChoice choice = choose_device("cuda", 0);
  if (choice.device->backend() != "cuda") GTEST_SKIP() << choice.note;
  Device& device = *choice.device;
  const auto stream = device.make_stream("");
  const auto event = device.make_event();
  ReluProgram relu;
  const Layout layout = Layout::plain({5});
  Buffer x = device.allocate(20), y = device.allocate(20), dy = device.allocate(20),
         dx = device.allocate(20);
  const auto argument = [&](const Buffer& b) {
    return Argument{b.data(), DType::kFloat32, {5}, layout};
  };
  const std::vector<float> x_host = {-2, -0.5, 0, 0.5, 3}, dy_host = {1, 2, 3, 4, 5};
  device.copy(x.data(), x_host.data(), 20, *stream);
  device.copy(dy.data(), dy_host.data(), 20, *stream);
  const std::vector<std::vector<Buffer>> inputs = {{x}, {y, dy}}, outputs = {{y}, {dx}};
  for (size_t i = 0; i < 2; ++i) {
    const Op& op = relu.program.ops()[i];
    KernelContext context{.op = op, .device = device};
    for (const Buffer& b : inputs[i]) context.inputs.push_back(argument(b));
    for (const Buffer& b : outputs[i]) context.outputs.push_back(argument(b));
    find_kernel("cuda", relu.program, op).create(context)->run(*stream);
  }
  std::vector<float> y_host(5, NAN), dx_host(5, NAN);
  device.copy(y_host.data(), y.data(), 20, *stream);
  device.copy(dx_host.data(), dx.data(), 20, *stream);
  stream->record(*event);
  event->synchronize();
  EXPECT_THAT(y_host, ElementsAre(0, 0, 0, 0.5f, 3));
  EXPECT_THAT(dx_host, ElementsAre(0, 0, 0, 4, 5));
}

}  // namespace
}  // namespace fleet
