#include "store/store.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/thread.h"

namespace fleet {
namespace {

using namespace std::chrono_literals;

TEST(MemoryStore, GetBeforeSet_Waits) {
  auto store = make_memory_store();
  Thread setter("setter", [&] { store->set("k", "v"); });
  EXPECT_EQ(store->get("k", 30s), "v");
  setter.join();
}

TEST(MemoryStore, GetNeverSet_TimesOutNamingKey) {
  try {
    make_memory_store()->get("missing", 1ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kTimeout);
    EXPECT_EQ(error.where(), "missing");
  }
}

TEST(PrefixStore, SameKey_DoesNotCollide) {
  auto store = make_memory_store();
  with_prefix(store, "a/")->set("k", "1");
  with_prefix(store, "b/")->set("k", "2");
  EXPECT_EQ(store->get("a/k", 0ms), "1");
  EXPECT_EQ(with_prefix(store, "b/")->add("k", 5), 7);
}

TEST(StoreBarrier, OneMissing_SaysHowManyCame) {
  auto store = make_memory_store();
  try {
    store_barrier(*store, "b", 2, 1ms);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.failure(), "1 of 2 ranks arrived");
  }
  store_barrier(*store, "b", 2, 1ms);  // the second comes: open
}

}  // namespace
}  // namespace fleet
