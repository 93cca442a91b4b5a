// Memory of the CUDA backend's device, under FLAGS_fraction_of_gpu_memory_to_use.
#include <gmock/gmock.h>

#include <cstring>

#include "backend/cuda/device.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

constexpr size_t kMiB = size_t{1} << 20;

TEST(CudaMemory, Allocated_IsZeroedAlsoWhenItWasUsedBefore) {
  cuda::CudaDevice device(0, {});
  for (int i = 0; i < 2; ++i) {
    const Buffer buffer = device.allocate(3000);
    char* bytes = static_cast<char*>(buffer.data());
    for (int k = 0; k < 3000; ++k) ASSERT_EQ(bytes[k], 0) << k;
    std::fill_n(bytes, 3000, 7);
  }
}

TEST(CudaMemory, BeyondTheFraction_IsRefusedWithWhatThereIs) {
  cuda::CudaDevice device(0, {.memory_fraction = 0.01});  // of the emulator's 8 GiB: 81.9 MiB
  EXPECT_EQ(device.memory().total, 8192 * kMiB);
  const Buffer some = device.allocate(40 * kMiB);
  EXPECT_NEAR(static_cast<double>(device.memory().available) / kMiB, 41.9, 0.1);
  try {
    device.allocate(60 * kMiB);
    FAIL() << "more than the fraction";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNoMemory);
    EXPECT_THAT(error.what(),
                ::testing::AllOf(HasSubstr("60.0 MiB requested, 41.9 MiB of 8192.0 MiB"),
                                 HasSubstr("40.0 MiB in use")));
  }
}

// A smaller batch, as kNoMemory suggests one, may not help.
TEST(CudaMemory, HostMemoryThatCannotBePinned_IsNotTheGpus) {
  cuda::CudaDevice device(0, {});
  try {
    device.allocate_host(size_t{1} << 40);
    FAIL() << "a tebibyte";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_THAT(error.what(), HasSubstr("the host cannot pin 1048576.0 MiB"));
  }
  EXPECT_NE(device.allocate_host(100).data(), nullptr) << "the next call succeeds";
}

TEST(CudaMemory, GivenBackAfterTheDevice_IsNoError) {
  Buffer buffer;
  {
    cuda::CudaDevice device(0, {});
    buffer = device.allocate(100);
  }
  std::memset(buffer.data(), 1, 100);  // an emulated GPU's memory is the host's
  buffer = {};
  EXPECT_EQ(buffer.data(), nullptr);
}

}  // namespace
}  // namespace fleet
