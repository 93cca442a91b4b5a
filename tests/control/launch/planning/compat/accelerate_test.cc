// Lines of accelerate launch against what a real accelerate makes of them: accelerate/golden.json,
// written by accelerate/lines.py.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "launch/planning/compat/yaml.h"
#include "tests/control/launch/planning/compat/launcher_table.h"
#include "tests/errors.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Pair;

fs::path golden_folder() {
  return fs::path(source_folder()) / "tests/control/launch/planning/compat/accelerate";
}

// In a folder with the configuration files, on a machine without GPUs, without a user's own files.
struct Accelerate : ::testing::Test {
  void SetUp() override {
    fs::remove_all(folder);
    fs::copy(golden_folder() / "configs", folder);
    fs::current_path(folder);
    folder = fs::current_path().string();
    ::setenv("HF_HOME", (folder + "/hf").c_str(), 1);
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
    for (const char* name : {"OMP_NUM_THREADS", "PYTHONPATH", "SLURM_JOB_ID"}) ::unsetenv(name);
  }
  void TearDown() override {
    fs::current_path(before);
    fs::remove_all(folder);
    for (const char* name : {"HF_HOME", "CUDA_VISIBLE_DEVICES"}) ::unsetenv(name);
  }

  void set_default(const std::string& config) const {
    fs::create_directories("hf/accelerate");
    fs::copy_file(config, "hf/accelerate/default_config.yaml");
  }

  std::string folder = ::testing::TempDir() + "accelerate";
  const fs::path before = fs::current_path();
};

LaunchRequest request_of(std::vector<std::string> words) {
  words.emplace_back("train.py");
  LaunchRequest request = parse_arguments(words);
  check_options(request, ArgumentsFor::kStart);
  return request;
}

Effects variables_of(const LaunchRequest& request) {
  Effects variables;
  for (const std::string& one : request.config.exported) {
    variables[one.substr(0, one.find('='))] = one.substr(one.find('=') + 1);
  }
  return variables;
}

// Those of torchrun and of oneCCL are not accelerate's to set here.
Effects variables_of(const Json& golden, const std::string& folder) {
  auto variables = golden.at("variables").get<Effects>();
  for (const char* name : {"MASTER_ADDR", "MASTER_PORT", "CCL_WORKER_COUNT"}) variables.erase(name);
  if (variables.contains("PYTHONPATH")) variables["PYTHONPATH"] = folder;
  return variables;
}

std::string text_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "" : value.dump();
}

// What accelerate hands to torchrun.
void expect_torchrun(const Json& torchrun, const LaunchRequest& request) {
  const Settings& settings = request.settings;
  const std::string nnodes = text_of(torchrun.at("nnodes")),
                    port = text_of(torchrun.at("master_port"));
  EXPECT_EQ(std::to_string(settings.integer("nproc_per_node")),
            text_of(torchrun.at("nproc_per_node")));
  EXPECT_EQ(std::to_string(settings.integer("max_restart")), text_of(torchrun.at("max_restarts")));
  EXPECT_EQ(settings.text("role"), text_of(torchrun.at("role")));
  if (nnodes == "1:1") {
    const std::string own = std::to_string(settings.integer("master_port"));
    EXPECT_EQ(own == "0" ? "29500" : own, port == "0" ? "29500" : port);
    return;
  }
  EXPECT_EQ(settings.text("nnodes"), nnodes);
  EXPECT_EQ(std::to_string(settings.integer("rank")), text_of(torchrun.at("node_rank")));
  const std::string endpoint = text_of(torchrun.at("rdzv_endpoint"));
  EXPECT_EQ(settings.text("master"),
            endpoint.empty() ? text_of(torchrun.at("master_addr")) + ":" + port : endpoint);
}

TEST_F(Accelerate, EveryOptionSet_IsWhatTheRealOneMakesOfIt) {
  const Json golden = Json::parse(read_file((golden_folder() / "golden.json").string()));
  ASSERT_GE(golden.at("sets").size(), 30u);
  for (const Json& each : golden.at("sets").elements()) {
    const auto line = each.at("line").get<std::string>();
    SCOPED_TRACE(line);
    std::vector<std::string> words = shell_words(line, "test");
    fs::remove_all("hf");
    if (words[0].starts_with("default:")) {
      set_default(words[0].substr(words[0].find(':') + 1));
      words.erase(words.begin());
    }
    const auto starts = each.at("starts").get<std::string>();
    if (starts == "refused") {
      EXPECT_THAT(thrown_by([&] { request_of(words); }), IsUsageError());
      continue;
    }
    const LaunchRequest request = request_of(words);
    EXPECT_EQ(variables_of(request), variables_of(each, folder));
    if (starts == "torchrun") {
      expect_torchrun(each.at("torchrun"), request);
    } else {
      EXPECT_EQ(request.settings.integer("nproc_per_node"), 1);
    }
  }
}

TEST_F(Accelerate, DefaultFile_IsReadOnlyForAnOptionOfAccelerate_AndNamed) {
  set_default("multi.yaml");
  const LaunchRequest plain = request_of({"--nproc_per_node=2", "--log_dir=logs"});
  EXPECT_THAT(plain.config.exported, IsEmpty());
  EXPECT_THAT(plain.notes, IsEmpty());
  const LaunchRequest accelerated = request_of({"--same_network"});
  EXPECT_THAT(variables_of(accelerated),
              IsSupersetOf({Pair("ACCELERATE_MIXED_PRECISION", "bf16")}));
  EXPECT_THAT(accelerated.notes, ElementsAre(HasSubstr("hf/accelerate/default_config.yaml")));
}

TEST_F(Accelerate, SharedGpuOption_HidesTheOthers_AndSaysSo) {
  const LaunchRequest request = request_of({"--multi_gpu", "--num_processes=2", "--gpu_ids=6,7"});
  EXPECT_EQ(variables_of(request).at("CUDA_VISIBLE_DEVICES"), "6,7");
  EXPECT_EQ(request.settings.text("gpus"), "6,7");
  EXPECT_THAT(request.notes, ElementsAre(HasSubstr("CUDA_VISIBLE_DEVICES=6,7")));
}

TEST(Yaml, TypesAreThoseOfPyYaml) {
  const Json read = parse_yaml(
      "\xef\xbb\xbf# a comment\r\n---\r\na: no\r\nb: 'no' # another\r\nc: 1e-5\nd: 1.5\ne: 7\n"
      "f: [1, 'x, y']\ng:\n- h\nh: ~\ni:\n  j: \"#\"\n  k: it's\n",
      "test");
  EXPECT_EQ(read, Json::parse(R"({"a": false, "b": "no", "c": "1e-5", "d": 1.5, "e": 7,
                                  "f": [1, "x, y"], "g": ["h"], "h": null,
                                  "i": {"j": "#", "k": "it's"}})"));
  EXPECT_EQ(parse_yaml("", "test"), Json::object());
}

TEST(Yaml, TheRest_IsRefusedWithItsLine) {
  for (const char* text :
       {"a: &b 1", "a: |\n  b", "a: {b: 1}", "a", "a: 'b", "a: [1", "a: 1\n  b: 2", "\ta: 1"}) {
    EXPECT_THAT(thrown_by([&] { parse_yaml(text, "test"); }), IsUsageError(HasSubstr("line ")))
        << text;
  }
}

}  // namespace
}  // namespace fleet
