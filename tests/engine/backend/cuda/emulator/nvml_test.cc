#include "backend/cuda/nvml.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/test_paths.h"

namespace fleet::cuda {
namespace {

const std::string kFake = program_folder() + "/libfleet_fake_nvml.so";

TEST(Nvml, KnownGpu_TellsUtilizationMemoryAndClock) {
  const auto nvml = Nvml::open("0000:0A:00.0", kFake);
  ASSERT_TRUE(nvml);
  const auto telemetry = nvml->read();
  ASSERT_TRUE(telemetry);
  EXPECT_EQ(telemetry->utilization, 97);
  EXPECT_EQ(telemetry->memory_used, size_t{10} << 30);
  EXPECT_EQ(telemetry->clock, 1980);
}

TEST(Nvml, UnknownGpu_IsNothingAndTheLibraryIsEnded) {
  void* library =
      ::dlopen(kFake.c_str(), RTLD_NOW);  // keeps its count while nobody else has it open
  ASSERT_TRUE(library);
  const auto started = reinterpret_cast<int (*)()>(::dlsym(library, "fake_nvml_started"));
  EXPECT_FALSE(Nvml::open("0000:0B:00.0", kFake));
  EXPECT_EQ(started(), 0);
  Nvml::open("0000:0A:00.0", kFake);
  EXPECT_EQ(started(), 0);
  ::dlclose(library);
}

TEST(Nvml, LibraryThatIsNotThere_IsNothing) {
  EXPECT_FALSE(Nvml::open("0000:0A:00.0", "libfleet_no_such_library.so"));
}

}  // namespace
}  // namespace fleet::cuda
