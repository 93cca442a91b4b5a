#include <gtest/gtest.h>

#include <cstdlib>

#include "base/error.h"
#include "store/env.h"
#include "store/store.h"

namespace fleet {
namespace {

struct JobStore : testing::Test {
  void TearDown() override {
    unsetenv(kEnvStoreAddress);
    set_store_connector({});
  }
};

TEST_F(JobStore, NoAddress_IsAbsentAndConnectsNothing) {
  bool connected = false;
  set_store_connector([&] { return connected = true, make_memory_store(); });
  EXPECT_EQ(job_store(), nullptr);
  EXPECT_FALSE(connected);
}

TEST_F(JobStore, Address_ComesFromTheConnector) {
  setenv(kEnvStoreAddress, "127.0.0.1:1", 1);
  const auto store = make_memory_store();
  set_store_connector([&] { return store; });
  EXPECT_EQ(job_store(), store);
}

TEST_F(JobStore, NoConnector_IsUnsupported) {
  setenv(kEnvStoreAddress, "127.0.0.1:1", 1);
  try {
    job_store();
    FAIL() << "connected with nothing";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
  }
}

}  // namespace
}  // namespace fleet
