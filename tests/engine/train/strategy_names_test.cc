// A strategy's names on their way into a job: the file, environment flags, overrides.
#include <gmock/gmock.h>

#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "train/device_settings.h"
#include "train/session.h"

namespace fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class StrategyNames : public ::testing::Test {
 protected:
  void set(const char* name, const char* value) {
    ::setenv(name, value, 1);
    names_.push_back(name);
  }
  void TearDown() override {
    for (const char* name : names_) ::unsetenv(name);
  }
  static Job job(const std::string& strategy, const std::vector<std::string>& overrides = {}) {
    ConfigTree tree = ConfigTree::from_json(R"({"model": {"name": "mlp", "num_classes": 4},
        "data": {"source": "synthetic", "train": {"samples": 64}}, "strategy": )" +
                                                strategy + "}",
                                            "job.json");
    apply_flags(tree);
    apply_overrides(tree, overrides);
    return make_job(tree);
  }
  static int64_t threads(const Job& job) {
    return job.strategy.integer("execution_strategy.num_threads");
  }

 private:
  std::vector<const char*> names_;
};

TEST_F(StrategyNames, Overrides_GoOverTheFileUnderAnyName) {
  EXPECT_EQ(threads(job(R"({"thread_num": 3})")), 3);
  EXPECT_EQ(threads(job(R"({"thread_num": 3})", {"strategy.execution_strategy.num_threads=4"})), 4);
  EXPECT_EQ(
      threads(job(R"({"execution_strategy": {"num_threads": 3}})", {"strategy.thread_num=4"})), 4);
  EXPECT_EQ(threads(job("{}", {"strategy.thread_num=4", "strategy.num_threads=5"})), 5);
}

TEST_F(StrategyNames, Dictionaries_AreOverridesToo) {
  const Job given = job(R"({"amp_configs": {"incr_ratio": 3.0, "decr_ratio": 0.6}})",
                        {"strategy.amp_configs={'decr_ratio': 0.5, 'custom_white_list': ['relu'],}",
                         "strategy.amp=True"});
  EXPECT_TRUE(given.strategy.boolean("amp"));
  EXPECT_EQ(given.strategy.number("amp_configs.incr_ratio"), 3);
  EXPECT_EQ(given.strategy.number("amp_configs.decr_ratio"), 0.5);
  EXPECT_THAT(given.strategy.texts("amp_configs.custom_white_list"), ElementsAre("relu"));
}

TEST_F(StrategyNames, File_IsAText) {
  const std::string path = testing::TempDir() + "names.prototxt";
  write_file_atomically(path, "thread_num: 3\nfuse_grad_size_in_MB: 8\n");
  const Job given = job("\"" + path + "\"", {"strategy.fuse_grad_size_in_MB=4"});
  EXPECT_EQ(threads(given), 3);
  EXPECT_EQ(given.strategy.integer("fuse_grad_size_in_MB"), 4);
  EXPECT_EQ(threads(job("{}", {"strategy=" + path})), 3);
}

TEST_F(StrategyNames, FlagsOfGradientGroups_AreTheirLimits) {
  set("FLAGS_fuse_parameter_memory_size", "16");
  set("FLAGS_fuse_parameter_groups_size", "50");
  const Job given = job(R"({"fuse_grad_size_in_MB": 8, "_fuse_grad_size_in_TFLOPS": 20})");
  EXPECT_EQ(given.strategy.integer("fuse_grad_size_in_MB"), 16);
  EXPECT_EQ(given.strategy.number("fuse_grad_size_in_TFLOPS"), 50);
  EXPECT_EQ(given.strategy.origin("fuse_grad_size_in_MB"),
            "environment FLAGS_fuse_parameter_memory_size");
  EXPECT_EQ(job("{}", {"strategy.fuse_grad_size_in_MB=4"}).strategy.integer("fuse_grad_size_in_MB"),
            4);
}

TEST_F(StrategyNames, FlagOfOneDnn_IsABuildStrategys) {
  set("FLAGS_mkldnn_enabled_op_types", "conv2d,relu");
  EXPECT_THAT(job("{}").strategy.texts("build_strategy.mkldnn_enabled_op_types"),
              ElementsAre("conv2d", "relu"));
}

// The documents' variables, and the keys whose values they are.
TEST_F(StrategyNames, VariablesOfTheDocuments_AreKeys) {
  struct Variable {
    const char *document, *name, *value, *key;
  };
  for (const Variable& variable : {
           Variable{"collective_training_practice", "FLAGS_fraction_of_gpu_memory_to_use", "0.98",
                    "train.fraction_of_gpu_memory_to_use"},
           Variable{"collective_training_practice", "FLAGS_fuse_parameter_memory_size", "16",
                    "strategy.fuse_grad_size_in_MB"},
           Variable{"collective_training_practice", "FLAGS_fuse_parameter_groups_size", "50",
                    "strategy.fuse_grad_size_in_TFLOPS"},
           Variable{"single_machine_best_practice", "FLAGS_cudnn_exhaustive_search", "True",
                    "strategy.cudnn_exhaustive_search"},
           Variable{"single_machine_best_practice", "FLAGS_enable_cublas_tensor_op_math", "1",
                    "train.enable_cublas_tensor_op_math"},
       }) {
    set(variable.name, variable.value);
    EXPECT_EQ(job("{}").settings.origin(variable.key), std::string("environment ") + variable.name)
        << variable.document;
    EXPECT_THAT(environment_without_effect(), ElementsAre());
  }
  set("FLAGS_reader_queue_speed_test_mode", "True");  // the reader's own
  EXPECT_THAT(environment_without_effect(), ElementsAre());
}

TEST_F(StrategyNames, EnvironmentThatNothingReads_IsNamed) {
  EXPECT_THAT(environment_without_effect(), ElementsAre());
  set("CPU_NUM", "4");
  set("FLAGS_zzz", "1");
  set("FLAGS_eager_delete_tensor_gb", "0");
  set("FLAGS_selected_gpus", "0");
  set("FLAGS_check_nan_inf", "1");
  const auto lines = environment_without_effect();
  EXPECT_THAT(lines, ElementsAre("without effect here: FLAGS_eager_delete_tensor_gb, FLAGS_zzz",
                                 HasSubstr("CPU_NUM=4 has no effect")));
}

TEST_F(StrategyNames, DataLoadersArgument_IsTheStrategys) {
  EXPECT_TRUE(job("{}", {"data.use_dali=True"}).strategy.boolean("use_dali"));
}

TEST_F(StrategyNames, IterationsARun_SpaceTheLosses) {
  const auto every = [](const std::vector<std::string>& overrides) {
    return job("{}", overrides).train.integer("fetch_every");
  };
  EXPECT_EQ(every({}), 10);
  EXPECT_EQ(every({"strategy.num_iteration_per_run=5"}), 10);
  EXPECT_EQ(every({"strategy.num_iteration_per_run=4"}), 12);
  EXPECT_EQ(every({"strategy.num_iteration_per_run=4", "train.fetch_every=1"}), 4);
  EXPECT_EQ(job("{}", {"strategy.num_iteration_per_run=4"}).settings.origin("train.fetch_every"),
            "strategy.execution_strategy.num_iteration_per_run");
}

TEST_F(StrategyNames, FieldInTheWrongPlace_IsRefusedWithItsPlace) {
  try {
    job(R"({"incr_ratio": 3})");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("'strategy.incr_ratio'"),
                                               HasSubstr("'strategy.amp_configs.incr_ratio'?")));
  }
}

// A file is refused at its line, a key by its name, with or without the rest of a Program.
TEST_F(StrategyNames, LaterField_IsTakenAtItsDefault) {
  const auto check = [](const char* value) {
    check_job(job(std::string(R"({"build_strategy": {"fused_attention": )") + value + "}}"), {});
  };
  EXPECT_NO_THROW(check("false"));
  EXPECT_THROW(check("true"), Error);
}

}  // namespace
}  // namespace fleet
