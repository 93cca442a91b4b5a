#include "train/device_settings.h"

#include <gmock/gmock.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "exec/backend.h"
#include "tests/captured_log.h"
#include "train/session.h"

namespace fleet {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A backend that no module names. Its devices share the memory of the host.
FLEET_BACKEND(unified) {
  def.uses_host_memory = true;
  def.false_notes = {{"winograd", "model.winograd: the unified backend decides"}};
}

class Flags : public ::testing::Test {
 protected:
  void set(const char* name, const char* value) {
    ::setenv(name, value, 1);
    names_.push_back(name);
  }
  void TearDown() override {
    for (const char* name : names_) ::unsetenv(name);
  }
  static Job job(const std::vector<std::string>& overrides = {}) {
    ConfigTree tree = ConfigTree::from_json(R"({
      "model": {"name": "mlp", "num_classes": 4},
      "data": {"source": "synthetic", "train": {"samples": 64}},
      "strategy": {"cudnn_exhaustive_search": true, "conv_workspace_size_limit": 100}
    })",
                                            "test");
    apply_flags(tree);
    apply_overrides(tree, overrides);
    return make_job(tree);
  }

 private:
  std::vector<const char*> names_;
};

TEST_F(Flags, None_GiveTheFilesValuesAndPaddlesDefaults) {
  const ConfigTree options = backend_options(job());
  EXPECT_EQ(options.peek("cudnn_exhaustive_search"), "true");
  EXPECT_EQ(options.peek("conv_workspace_size_limit"), "100");
  EXPECT_EQ(options.peek("tensor_op_math"), "false");
  EXPECT_EQ(std::stod(*options.peek("memory_fraction")), 0.92);
  EXPECT_FALSE(device_options(job()).deterministic);
}

TEST_F(Flags, OfTheEnvironment_GoOverTheFileAndUnderTheCommandLine) {
  set("FLAGS_cudnn_exhaustive_search", "False");
  set("FLAGS_conv_workspace_size_limit", "256");
  set("FLAGS_enable_cublas_tensor_op_math", "true");
  set("FLAGS_fraction_of_gpu_memory_to_use", "0.5");
  const Job given = job({"strategy.conv_workspace_size_limit=64", "train.deterministic=true"});
  const ConfigTree options = backend_options(given);
  EXPECT_EQ(options.peek("cudnn_exhaustive_search"), "false");
  EXPECT_EQ(options.peek("conv_workspace_size_limit"), "64");
  EXPECT_EQ(options.peek("tensor_op_math"), "true");
  EXPECT_EQ(options.peek("memory_fraction"), "0.5");
  EXPECT_TRUE(device_options(given).deterministic);
}

TEST_F(Flags, ThatCannotBe_AreNamed) {
  set("FLAGS_check_nan_inf", "maybe");
  try {
    job();
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.where(), "environment FLAGS_check_nan_inf");
  }
}

TEST_F(Flags, OfParameterServers_SetTheirFieldsAndSayIt) {
  set("FLAGS_communicator_send_queue_size", "32");
  set("FLAGS_communicator_independent_recv_thread", "1");
  set("FLAGS_rpc_deadline", "90000");
  ConfigTree tree = ConfigTree::from_json(R"({
    "model": {"name": "mlp", "num_classes": 4},
    "data": {"source": "synthetic", "train": {"samples": 64}},
    "strategy": {"a_sync_configs": {"send_queue_size": 8}}
  })",
                                          "test");
  const std::vector<std::string> lines = apply_server_flags(tree);
  EXPECT_THAT(lines, Contains(HasSubstr("send_queue_size to 32, instead of 8")));
  EXPECT_EQ(lines.size(), 3u);
  const Job served = make_job(tree);
  EXPECT_EQ(served.strategy.integer("a_sync_configs.send_queue_size"), 32);
  EXPECT_TRUE(served.strategy.boolean("a_sync_configs.independent_recv_thread"));
  EXPECT_EQ(served.comm.number("timeout"), 90);
  const auto unread = [](bool servers) {
    return ::testing::PrintToString(environment_without_effect(servers));
  };
  EXPECT_THAT(unread(false), HasSubstr("FLAGS_rpc_deadline"));
  EXPECT_THAT(unread(true), Not(HasSubstr("FLAGS_rpc_deadline")));
  set("FLAGS_rpc_retry_times", "7");
  EXPECT_THROW(apply_server_flags(tree), Error);
}

TEST_F(Flags, WorkspaceBelowZero_IsRefused) {
  EXPECT_THROW(backend_options(job({"strategy.conv_workspace_size_limit=-1"})), Error);
}

TEST_F(Flags, OfTheGpu_HaveNoEffectOnTheCpu) {
  set("FLAGS_fraction_of_gpu_memory_to_use", "0.5");
  set("FLAGS_check_nan_inf", "1");
  EXPECT_THAT(without_effect(job({"train.cuda_graph=false"}), "cpu"),
              ElementsAre("strategy.cudnn_exhaustive_search", "train.fraction_of_gpu_memory_to_use",
                          "train.cuda_graph"));
  EXPECT_THAT(without_effect(job(), "cuda"), IsEmpty());
}

// A job sets the options of every backend; each takes its own.
TEST_F(Flags, OptionsOfAnotherBackend_DoNotReachTheCpu) {
  EXPECT_THAT(options_of_backend("cpu"), ElementsAre("conv_workspace_size_limit"));
  EXPECT_THAT(options_of_backend("tpu"), IsEmpty());
  EXPECT_EQ(choose_device("cpu", 0, {}, backend_options(job())).device->backend(), "cpu");
}

// A check of a job file knows the backend without a device.
TEST_F(Flags, BackendOfADevice_IsThatOfTheChosenOne) {
  for (const char* wanted : {"cpu", "auto"}) {
    EXPECT_EQ(backend_of_device(wanted), choose_device(wanted, 0).device->backend()) << wanted;
  }
}

TEST_F(Flags, OptionOutOfItsBackendsRange_IsRefused) {
  ConfigTree own;
  own.set("conv_workspace_size_limit", "-3", "test");
  EXPECT_THROW(choose_device("cpu", 0, {}, own), Error);
}

TEST_F(Flags, CudnnDeterministic_IsTheJobsKey) {
  set("FLAGS_cudnn_deterministic", "1");
  EXPECT_TRUE(device_options(job()).deterministic);
  EXPECT_FALSE(device_options(job({"train.deterministic=false"})).deterministic);
}

TEST_F(Flags, OfAStrategyFile_HaveNoEffectOnTheCpuEither) {
  const std::string path = testing::TempDir() + "device_settings.prototxt";
  write_file_atomically(path,
                        "cudnn_batchnorm_spatial_persistent: true cudnn_exhaustive_search: true "
                        "conv_workspace_size_limit: 7");
  const Job from_file = job({"strategy.file=" + path});
  EXPECT_THAT(without_effect(from_file, "cpu"), Contains("strategy.cudnn_exhaustive_search"));
  EXPECT_THAT(without_effect(from_file, "cpu"),
              Not(Contains("strategy.cudnn_batchnorm_spatial_persistent")));  // says so itself
  EXPECT_EQ(from_file.strategy.integer("conv_workspace_size_limit"), 100);    // the job's own
}

TEST(CheckJob, StrategyThatCannotRun_IsRefusedWithoutAProgram) {
  const auto check = [](const std::vector<std::string>& overrides) {
    ConfigTree tree = ConfigTree::from_json(
        R"({"model": {"name": "mlp", "num_classes": 4}, "data": {"source": "synthetic", "train": {"samples": 64}}})",
        "test");
    apply_overrides(tree, overrides);
    check_job(make_job(tree), {});
  };
  EXPECT_NO_THROW(check({"strategy.amp=true"}));
  EXPECT_THROW(check({"strategy.amp=true", "strategy.amp_configs.dtype=float8"}), Error);
  EXPECT_THROW(check({"strategy.amp=true", "strategy.amp_configs.incr_ratio=-1"}), Error);
  EXPECT_THROW(check({"strategy.tensor_parallel=true"}), Error);
  EXPECT_THROW(check({"strategy.conv_workspace_size_limit=-1"}), Error);
  EXPECT_THROW(check({"strategy.file=/nosuch"}), Error);
}

TEST_F(Flags, Pixels_FollowTheBackendUnlessTheJobSays) {
  EXPECT_FALSE(feeds_bytes(job(), "cpu"));
  EXPECT_TRUE(feeds_bytes(job(), "cuda"));
  EXPECT_TRUE(feeds_bytes(job({"data.pixels=uint8"}), "cpu"));
  EXPECT_FALSE(feeds_bytes(job({"data.pixels=float32"}), "cuda"));
  EXPECT_FALSE(feeds_bytes(job(), "unified"));
}

TEST_F(Flags, NotesOfABackend_AreLogged) {
  const std::string log = captured_log([&] {
    build_program(job({"model.winograd=false"}),
                  {.columns = image_columns({1, 8, 8}), .backend = "unified"});
  });
  EXPECT_THAT(log, HasSubstr("the unified backend decides"));
}

TEST(DeviceRequest, Auto_TakesTheGpuTheLauncherGave) {
  EXPECT_EQ(device_request("auto", "3", true).index, 3);
  EXPECT_TRUE(device_request("auto", "3", true).assigned);
  EXPECT_FALSE(device_request("auto", "3", false).assigned);  // a user's own variable
  EXPECT_EQ(device_request("auto", "2,3", true).index, 2);
  EXPECT_EQ(device_request("auto", std::nullopt, false).name, "auto");
  EXPECT_EQ(device_request("cuda", std::nullopt, false).index, 0);
}

TEST(DeviceRequest, AutoWithoutAGpuFromTheLauncher_IsTheCpuWithAReason) {
  const DeviceRequest request = device_request("auto", std::nullopt, true);
  EXPECT_EQ(request.name, "cpu");
  EXPECT_THAT(request.note, HasSubstr("no GPU to this rank"));
}

TEST(DeviceRequest, CpuAskedFor_NeedsNoReason) {
  EXPECT_EQ(device_request("cpu", "nonsense", true).note, "");
}

TEST(DeviceRequest, SelectedThatIsNoList_IsRefused) {
  EXPECT_THROW(device_request("cuda", "0,x", false), Error);
  EXPECT_THROW(device_request("auto", "-1", true), Error);
}

}  // namespace
}  // namespace fleet
