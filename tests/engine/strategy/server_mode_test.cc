#include "strategy/server_mode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/engine/strategy/strategy_text.h"
#include "tests/errors.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

ServerSettings settings_of(const std::string& text) {
  return server_settings(strategy_proto(text));
}

TEST(ServerMode, Fields_ChooseItAsInPaddle) {
  EXPECT_EQ(settings_of("").mode, ServerMode::kSync);
  EXPECT_EQ(settings_of("a_sync: false").mode, ServerMode::kSync);
  EXPECT_EQ(settings_of("a_sync: false a_sync_configs { k_steps: 0 }").mode, ServerMode::kSync);
  EXPECT_EQ(settings_of("a_sync_configs { k_steps: -1 }").mode, ServerMode::kSync);
  EXPECT_EQ(settings_of("a_sync: true").mode, ServerMode::kAsync);
  EXPECT_EQ(settings_of("a_sync: true a_sync_configs { k_steps: 0 }").mode, ServerMode::kAsync);
  EXPECT_EQ(settings_of("a_sync_configs { k_steps: 100 }").mode, ServerMode::kGeo);
}

TEST(ServerMode, Geo_DoesNotDependOnTheOrderOfTheFields) {
  for (const char* text : {"a_sync: true a_sync_configs { k_steps: 400 }",
                           "a_sync_configs { k_steps: 400 } a_sync: true"}) {
    const ServerSettings settings = settings_of(text);
    EXPECT_EQ(settings.mode, ServerMode::kGeo);
    EXPECT_EQ(settings.geo_steps, 400);
  }
}

TEST(ServerMode, Contradictions_AreRefused) {
  EXPECT_THAT(thrown_by([] { settings_of("a_sync: false a_sync_configs { k_steps: 4 }"); }),
              IsUsageError("strategy"));
  EXPECT_THAT(thrown_by([] { settings_of("a_sync: true a_sync_configs { k_steps: -1 }"); }),
              IsUsageError("strategy"));
}

TEST(ServerMode, Values_OfEachFieldAreRead) {
  const ServerSettings settings = settings_of(
      "a_sync: true a_sync_configs { max_merge_var_num: 2 send_queue_size: 3 send_wait_times: 4 "
      "independent_recv_thread: true min_send_grad_num_before_recv: 5 max_staleness: 6 }");
  EXPECT_EQ(settings.merged_pushes, 2);
  EXPECT_EQ(settings.queue_size, 3);
  EXPECT_EQ(settings.queue_waits, 4);
  EXPECT_TRUE(settings.independent_pulls);
  EXPECT_EQ(settings.pushes_before_pull, 5);
  EXPECT_EQ(settings.max_staleness, 6);
  EXPECT_EQ(settings_of("a_sync: true").max_staleness, -1);
  EXPECT_EQ(settings.text(), "async (strategy.a_sync is true)");
}

TEST(ServerMode, ValuesOutOfRange_AreRefused) {
  for (const char* field : {"max_merge_var_num", "send_queue_size", "send_wait_times",
                            "min_send_grad_num_before_recv", "thread_pool_size"}) {
    const std::string text = std::string("a_sync_configs { ") + field + ": 0 }";
    const Error error = thrown_by([&] { settings_of(text); });
    EXPECT_THAT(error, IsUsageError("strategy")) << field;
    EXPECT_THAT(error.failure(), HasSubstr(field));
  }
}

TEST(ServerMode, WhatIsNotSupported_IsRefusedByName) {
  for (const char* value :
       {"heter_worker_device_guard: \"gpu\"", "use_ps_gpu: 1", "use_gpu_graph: 1",
        "lr_decay_steps: 5", "runtime_split_send_recv: true", "launch_barrier: false"}) {
    const std::string text = std::string("a_sync_configs { ") + value + " }";
    const Error error = thrown_by([&] { settings_of(text); });
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported) << value;
    const std::string field = std::string(value).substr(0, std::string(value).find(':'));
    EXPECT_THAT(error.failure(), HasSubstr(field));
  }
  settings_of("a_sync_configs { launch_barrier: true lr_decay_steps: 10 use_ps_gpu: 0 }");
}

TEST(ServerMode, FieldsOfOtherModes_AreNamed) {
  const auto unread = [](const std::string& text) {
    const StrategyProto proto = strategy_proto(text);
    return unread_server_fields(proto, server_settings(proto).mode);
  };
  const std::string configs = "a_sync_configs { send_queue_size: 4 thread_pool_size: 2 ";
  const std::string queue = "a_sync_configs.send_queue_size";
  const std::string threads = "a_sync_configs.thread_pool_size";
  EXPECT_THAT(unread(configs + "}"), UnorderedElementsAre(queue, threads));
  EXPECT_THAT(unread(configs + "k_steps: 4 }"), UnorderedElementsAre(queue, threads));
  EXPECT_THAT(unread("a_sync: true " + configs + "}"), ElementsAre(threads));
  EXPECT_THAT(unread("a_sync_configs { max_staleness: 0 }"),
              ElementsAre("a_sync_configs.max_staleness"));
  const std::string least = "a_sync: true a_sync_configs { min_send_grad_num_before_recv: 3 ";
  EXPECT_THAT(unread(least + "}"), ElementsAre("a_sync_configs.min_send_grad_num_before_recv"));
  EXPECT_THAT(unread(least + "independent_recv_thread: true }"), IsEmpty());
  EXPECT_THAT(unread("a_sync_configs { send_queue_size: 16 }"), IsEmpty());  // the default
}

TEST(ServerMode, VariablesWithoutAKey_MustHaveTheirDefaults) {
  const auto check = [](const std::map<std::string, std::string>& variables) {
    check_server_variables([&](const std::string& name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  check({});
  check({{"FLAGS_rpc_retry_times", "3"}, {"FLAGS_LAUNCH_BARRIER", "1"}});
  EXPECT_THAT(thrown_by([&] {
                check({{"FLAGS_rpc_retry_times", "5"}});
              }),
              IsError(ErrorCode::kUnsupported, HasSubstr("FLAGS_rpc_retry_times")));
  EXPECT_TRUE(is_server_variable("FLAGS_communicator_is_sgd_optimizer"));
  EXPECT_FALSE(is_server_variable("FLAGS_cudnn_deterministic"));
}

}  // namespace
}  // namespace fleet
