#include "launch/planning/start_style.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "launch/planning/arguments.h"
#include "launch/planning/compat/line.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using enum StartStyle;

struct Case {
  const char* name;
  StartFacts facts;
  StartStyle style;
};

TEST(StartStyleOf, Job_FollowsItsKindItsScriptAndItsLine) {
  const std::string paddles = "import Paddle.distributed as dist";
  const Case cases[] = {
      {"another program", {.options = {"--nproc_per_node=2"}, .level = "INFO"}, kLine},
      {"a PyTorch script", {.script = "import torch"}, kLine},
      {"a job file", {.job_file = true}, kTable},
      {"the word in a script", {.script = paddles}, kTable},
      {"a variable of Paddle", {.script = "echo $PADDLE_TRAINER_ID"}, kTable},
      {"an option that only Paddle has", {.options = {"--selected_gpus=0"}}, kTable},
      {"with dashes", {.options = {"--selected-gpus"}}, kTable},
      {"one that srun has, too", {.options = {"--gpus=0,1"}}, kLine},
      {"--table=auto", {.table = TableStyle::kAuto}, kTable},
      {"--table=narrow", {.table = TableStyle::kNarrow}, kTable},
      {"--table=none", {.table = TableStyle::kNone}, kLine},
      {"--table=none for Paddle's script", {.table = TableStyle::kNone, .script = paddles}, kLine},
      // Its configuration is printed, without a table.
      {"--table=none for a job file", {.table = TableStyle::kNone, .job_file = true}, kTable},
      {"--log_level=DEBUG", {.level = "DEBUG"}, kTable},
      {"--log_level=DEBUG --table=none", {.table = TableStyle::kNone, .level = "DEBUG"}, kTable},
      {"--log_level=ERROR", {.level = "ERROR"}, kLine},
      {"torchrun", {.as_torchrun = true, .script = paddles}, kSilent},
      {"torchrun --rank", {.options = {"--rank=0"}, .as_torchrun = true}, kSilent},
      {"torchrun --table=none", {.table = TableStyle::kNone, .as_torchrun = true}, kSilent},
      {"torchrun --table=paddle", {.table = TableStyle::kPaddle, .as_torchrun = true}, kTable},
  };
  for (const Case& each : cases) EXPECT_EQ(start_style(each.facts), each.style) << each.name;
}

// The options of other launchers are declared in one table: none of them may count as Paddle's.
TEST(StartStyleOf, OptionsOfOtherLaunchers_AreNotPaddles) {
  for (const CompatOption& option : compat_options()) {
    for (const std::string& flag : option.flags) {
      if (option.of != "Paddle") {
        EXPECT_FALSE(is_only_paddles(flag)) << option.of << " " << flag;
      } else {
        EXPECT_TRUE(is_only_paddles(flag)) << flag;
      }
    }
  }
}

TEST(StartStyleOf, OptionsWithOtherNames_CountAsWritten) {
  const auto style = [](const std::string& flag) {
    return parse_arguments({flag, "true"}).config.logs.start;
  };
  EXPECT_EQ(style("--devices=0"), kTable);
  EXPECT_EQ(style("--gpus=0"), kLine);
  EXPECT_EQ(style("--max_restart=1"), kTable);
  EXPECT_EQ(style("--max_restarts=1"), kLine);  // torchrun's
}

struct ScriptText : ::testing::Test {
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "fleet_script.XXXXXX";
    folder = ::mkdtemp(pattern.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string file(const std::string& name, const std::string& text) const {
    const std::string path = folder + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << text;
    return path;
  }
  static std::string text_of(const std::vector<std::string>& program,
                             ProgramKind kind = ProgramKind::kByName) {
    return script_text(program, kind);
  }
  std::string folder;
};

TEST_F(ScriptText, PythonScript_IsReadHoweverItIsStarted) {
  const std::string script = file("train.py", "import here");
  for (const auto& program : std::vector<std::vector<std::string>>{
           {script, "--lr", "1"},
           {"python3", script},
           {"/usr/bin/python3.11", "-u", "-X", "dev", script, "other.py"}}) {
    EXPECT_EQ(text_of(program), "import here") << program.front();
  }
  EXPECT_EQ(text_of({file("train", "import here")}, ProgramKind::kScript), "import here");
}

TEST_F(ScriptText, ShellScripts_AreRead) {
  EXPECT_EQ(text_of({file("run.sh", "#!/bin/sh\nhere")}), "#!/bin/sh\nhere");
  EXPECT_EQ(text_of({"bash", "-e", file("run", "here")}), "here");
  EXPECT_EQ(text_of({"sh", "-c", "here", "there"}), "here");
}

TEST_F(ScriptText, Module_IsLookedForInPythonsPath) {
  file("pack/train.py", "here");
  file("whole/__main__.py", "there");
  ::setenv("PYTHONPATH", ("/nowhere:" + folder).c_str(), 1);
  EXPECT_THAT(text_of({"pack.train"}, ProgramKind::kModule), HasSubstr("here"));
  EXPECT_THAT(text_of({"whole"}, ProgramKind::kModule), HasSubstr("there"));
  EXPECT_THAT(text_of({"python3", "-m", "whole"}), HasSubstr("there"));
  ::unsetenv("PYTHONPATH");
  EXPECT_EQ(text_of({"paddlenlp.train"}, ProgramKind::kModule), "paddlenlp.train");
}

TEST_F(ScriptText, OtherPrograms_HaveNone) {
  EXPECT_THAT(text_of({"true"}), IsEmpty());
  EXPECT_THAT(text_of({file("binary", "\177ELF here")}), IsEmpty());
  EXPECT_THAT(text_of({file("job.json", "here")}), IsEmpty());
  EXPECT_THAT(text_of({folder + "/missing.py"}), IsEmpty());
  EXPECT_THAT(text_of({"python3"}), IsEmpty());
}

TEST_F(ScriptText, LongScript_IsReadInPart) {
  const std::string text = text_of({file("long.py", std::string(1 << 20, 'x'))});
  EXPECT_GE(text.size(), 4096u);
  EXPECT_LE(text.size(), 64u << 10);
}

// The options of the fleetrun on a node are not those of the user's line.
TEST(KeepStartStyle, LineOnANode_IsShownAsTheUsersLine) {
  const auto kept = [](const std::vector<std::string>& line, std::vector<std::string> arguments) {
    const size_t before = arguments.size();
    keep_start_style(parse_arguments(line), &arguments);
    return arguments.size() == before ? "" : arguments.back();
  };
  EXPECT_EQ(kept({"--nproc_per_node=2", "true"}, {"--nproc_per_node=2"}), "");
  EXPECT_EQ(kept({"--nproc_per_node=2", "true"}, {"--ips=a,b"}), "--table=none");
  EXPECT_EQ(kept({"--devices=0", "true"}, {"--gpus=0"}), "--table=auto");
  EXPECT_EQ(kept({"--ips=a,b", "true"}, {"--ips=a,b"}), "");
  EXPECT_EQ(kept({"--table=paddle", "true"}, {"--table=paddle"}), "");
  EXPECT_EQ(kept({"job.json"}, {"--ips=a,b"}), "");
}

}  // namespace
}  // namespace fleet
