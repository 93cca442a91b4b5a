// Bad input to a training job: one clear line, exit code 2, nothing half-done.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "base/text.h"
#include "tests/test_paths.h"
#include "tests/training/training_job.h"
#include "train/checkpoint.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A line names this subject: "fleet-worker: SUBJECT: what failed; what to do".
auto IsAbout(const std::string& subject) { return HasSubstr("fleet-worker: " + subject); }

class BadInput : public ::testing::Test {
 protected:
  // The line that fleet-worker ends with, exit code 2, for job.json with these overrides.
  std::string refusal(const std::vector<std::string>& overrides) {
    std::vector<std::string> arguments = {"job.json"};
    for (const std::string& text : overrides) arguments.insert(arguments.end(), {"--set", text});
    std::string error;
    EXPECT_EQ(job_.run_worker(arguments, &error), 2) << error;
    EXPECT_FALSE(std::filesystem::exists(job_.path("output/metrics.jsonl")));
    if (error.size() > 0) error.pop_back();
    error = without_news(error);
    EXPECT_THAT(error, StartsWith("fleet-worker: "));
    EXPECT_EQ(error.find('\n'), std::string::npos) << "more than a line: " << error;
    return error;
  }
  // Without the log lines that describe the job.
  static std::string without_news(const std::string& text) {
    std::string rest;
    for (const std::string& line : split(text, '\n')) {
      if (!line.starts_with("INFO ")) rest += (rest.empty() ? "" : "\n") + line;
    }
    return rest;
  }
  void write(const std::string& file, const std::string& content) {
    std::ofstream(job_.path(file)) << content;
  }
  TrainingJob job_;
};

TEST_F(BadInput, UnknownJobKey_NamesTheNearest) {
  EXPECT_THAT(refusal({"data.batchsize=4"}), AllOf(HasSubstr("--set: unknown key 'data.batchsize'"),
                                                   HasSubstr("'data.batch_size'?")));
}

TEST_F(BadInput, UnknownArgument_NamesTheNearest) {
  std::string error;
  EXPECT_EQ(job_.run_worker({"job.json", "--sett", "a=b"}, &error), 2);
  EXPECT_THAT(error, HasSubstr("did you mean '--set'?"));
}

TEST_F(BadInput, JobFileThatIsMissingOrNoJson_IsNamed) {
  std::string error;
  EXPECT_EQ(job_.run_worker({"no.json"}, &error), 2);
  EXPECT_THAT(error, IsAbout("no.json"));
  write("broken.json", "{\n  \"model\": }\n");
  EXPECT_EQ(job_.run_worker({"broken.json"}, &error), 2);
  EXPECT_THAT(error, AllOf(IsAbout("broken.json"), HasSubstr("line 2")));
}

// Damaged, made-up or endless ones: a line at once, whatever the parser would do with them.
TEST_F(BadInput, JobFileBeyondAllMeasure_IsRefused) {
  const auto refused = [&](const std::string& content) {
    write("huge.json", content);
    std::string error;
    EXPECT_EQ(job_.run_worker({"huge.json"}, &error), 2);
    EXPECT_LT(error.size(), 5000u);
    return error;
  };
  std::string deep = R"({"model": )";
  for (int i = 0; i < 1000000; ++i) deep += R"({"a":)";
  EXPECT_THAT(refused(deep), IsAbout("huge.json"));
  EXPECT_THAT(refused(deep.substr(0, 3000000)), IsAbout("huge.json"));
  EXPECT_THAT(refused(R"({"model": )" + std::string(3000000, '[')), IsAbout("huge.json"));
  std::string keys = "{";
  for (int i = 0; i < 100000; ++i) keys += "\"key" + std::to_string(i) + "\": 1, ";
  EXPECT_THAT(refused(keys + "}"), IsAbout("huge.json"));
  EXPECT_THAT(refused("{\"" + std::string(100000, 'k') + "\": 1}"), IsAbout("huge.json"));
}

// Opening a pipe without a writer, or reading /dev/zero, would never end.
TEST_F(BadInput, WhatIsNoFile_IsRefusedWhereverAFileBelongs) {
  ASSERT_EQ(::mkfifo(job_.path("pipe").c_str(), 0600), 0);
  std::string error;
  for (const std::string file : {"pipe", "/dev/zero", "."}) {
    EXPECT_EQ(job_.run_worker({file}, &error), 2);
    EXPECT_THAT(error, IsAbout(file));
    EXPECT_THAT(refusal({"strategy.file=" + file}), IsAbout(file));
    EXPECT_THAT(refusal({"checkpoint.weights=" + file}),
                HasSubstr(file == "." ? "no weights" : "not a file"));
  }
  write("list.json", R"({"model": {"name": "lenet"}, "data": {"source": "image_list",
    "image": {"channels": 1, "height": 28, "width": 28}}})");
  write("idx.json",
        R"({"model": {"name": "lenet"}, "data": {"source": "idx", "test": {"images": ""},
    "train": {"labels": "no"}}})");
  for (const std::string file : {"pipe", "/dev/zero"}) {
    EXPECT_EQ(job_.run_worker({"list.json", "--set", "data.train.list=" + file}, &error), 2);
    EXPECT_EQ(job_.run_worker({"idx.json", "--set", "data.train.images=" + file}, &error), 2);
  }
}

TEST_F(BadInput, ListThatIsNoText_EndsAtItsBeginning) {
  write("list.json", R"({"model": {"name": "lenet"}, "data": {"source": "image_list",
    "train": {"list": "train.txt"}, "image": {"channels": 1, "height": 28, "width": 28}}})");
  write("train.txt", "");
  std::filesystem::resize_file(job_.path("train.txt"), uint64_t{1} << 40);  // takes no space
  std::string error;
  EXPECT_EQ(job_.run_worker({"list.json"}, &error), 2);
  EXPECT_THAT(error, IsAbout("train.txt:1"));
}

TEST_F(BadInput, IdxHeaderThatClaimsTooMuch_IsRefusedAtOnce) {
  write("idx.json",
        R"({"model": {"name": "lenet"}, "data": {"source": "idx", "test": {"images": ""},
    "train": {"images": "images", "labels": "images"}}})");
  write("images", std::string("\0\0\x08\x03\0\xff\xff\xff\0\0\x01\0\0\0\x01\0", 16));
  std::string error;
  EXPECT_EQ(job_.run_worker({"idx.json"}, &error), 2);
  EXPECT_THAT(error, IsAbout("images"));
}

TEST_F(BadInput, NamesThatATerminalObeys_AreWrittenOut) {
  const std::string evil = "a\x1b[2J\nERROR all is lost";
  write("list.json", R"({"model": {"name": "lenet"}, "data": {"source": "image_list",
    "train": {"list": "train.txt"}, "image": {"channels": 1, "height": 28, "width": 28}}})");
  write("train.txt", "a\x1b[2J.png 1\n");
  std::string error;
  EXPECT_EQ(job_.run_worker({"list.json"}, &error), 2);
  const auto harmless = [&] { return error.find('\x1b') == std::string::npos; };
  EXPECT_THAT(error, HasSubstr("a\\x1b[2J.png"));
  EXPECT_TRUE(harmless()) << error;
  EXPECT_EQ(job_.run_worker({evil}, &error), 2);
  EXPECT_THAT(error, HasSubstr("a\\x1b[2J\\nERROR"));
  EXPECT_TRUE(harmless()) << error;
  for (const std::string option : {"--set", "--device", evil.c_str()}) {
    EXPECT_EQ(job_.run_worker({"job.json", option, evil}, &error), 2);
    EXPECT_TRUE(harmless()) << option << error;
  }
  EXPECT_EQ(job_.run_worker({"job.json", "--set", "model.name=" + evil}, &error), 2);
  EXPECT_TRUE(harmless()) << error;
}

TEST_F(BadInput, UnknownModelSourceOptimizer_AreNamed) {
  EXPECT_THAT(refusal({"model.name=resnet51"}), EndsWith("; did you mean 'resnet50'?"));
  EXPECT_THAT(refusal({"data.source=image_lst"}), EndsWith("; did you mean 'image_list'?"));
  EXPECT_THAT(refusal({"optimizer.name=momentun"}), EndsWith("; did you mean 'momentum'?"));
}

TEST_F(BadInput, MissingData_IsNamed) {
  write("idx.json",
        R"({"model": {"name": "lenet"}, "data": {"source": "idx", "root": "nowhere"}})");
  std::string error;
  EXPECT_EQ(job_.run_worker({"idx.json"}, &error), 2);
  EXPECT_THAT(error, IsAbout("nowhere/train-images-idx3-ubyte.gz"));
}

TEST_F(BadInput, ListFile_NamesFileAndLine) {
  write("list.json", R"({"model": {"name": "lenet"},
    "data": {"source": "image_list", "train": {"list": "train.txt"}, "test": {"list": ""},
             "image": {"channels": 1, "height": 28, "width": 28}}})");
  write("a.png", "not looked at yet");
  const auto with_list = [&](const std::string& content) {
    write("train.txt", content);
    std::string error;
    EXPECT_EQ(job_.run_worker({"list.json"}, &error), 2) << error;
    return error;
  };
  EXPECT_THAT(with_list("a.png 0\na.png\n"), IsAbout("train.txt:2"));
  EXPECT_THAT(with_list("a.png 0\na.png seven\n"), IsAbout("train.txt:2"));
  EXPECT_THAT(with_list("a.png 10\n"), IsAbout("train.txt:1"));
  EXPECT_THAT(with_list("b.png 1\n"), IsAbout("train.txt:1"));
}

TEST_F(BadInput, ImageTheModelCannotTake_IsRefused) {
  EXPECT_THAT(refusal({"data.image.height=4", "data.image.width=4"}), HasSubstr("data.image"));
}

TEST_F(BadInput, UnsupportedStrategy_IsNamed) {
  EXPECT_THAT(refusal({"strategy.tensor_parallel=true"}), HasSubstr("tensor_parallel"));
}

TEST_F(BadInput, Checkpoint_TruncatedOrOfAnotherModel_IsRefused) {
  std::string error;
  ASSERT_EQ(job_.run_worker(
                {"job.json", "--set", "train.max_steps=2", "--set", "train.output=good"}, &error),
            0)
      << error;
  const std::string folder = *latest_checkpoint(job_.path("good/checkpoints"));
  EXPECT_THAT(refusal({"model.name=mlp", "checkpoint.resume=" + folder}), IsAbout(folder));
  EXPECT_THAT(refusal({"model.num_classes=12", "checkpoint.resume=" + folder}), IsAbout(folder));
  const std::string content = read_file(folder + "/model.safetensors");
  write_file_atomically(folder + "/model.safetensors", content.substr(0, content.size() / 2));
  EXPECT_THAT(refusal({"checkpoint.resume=" + folder}), IsAbout(folder + "/model.safetensors"));
}

// A script that gives one rank another job, as a mixed-up cluster would.
class MixedRanks : public BadInput {
 protected:
  // Output of three ranks, of which rank 1 has these overrides. Expects exit code 2.
  std::string output_of(const std::string& overrides) {
    write("rank.sh", "#!/bin/sh\nmore=''; [ $RANK = 1 ] && more='" + overrides + "'\nexec '" +
                         program_folder() + "/fleet-worker' job.json $more\n");
    Fleetrun fleetrun(job_.folder(), "mixed", {"--nproc_per_node=3", "sh", "rank.sh"});
    EXPECT_EQ(fleetrun.wait(), 2) << fleetrun.output();
    EXPECT_THAT(fleetrun.output(), HasSubstr("rank 1 differs from ranks 0, 2: "));
    EXPECT_FALSE(std::filesystem::exists(job_.path("output")));
    return fleetrun.output();
  }
};

TEST_F(MixedRanks, AnotherJob_IsNamedByKey) {
  EXPECT_THAT(output_of("--set data.batch_size=16 --set model.num_classes=11"),
              AllOf(HasSubstr("data.batch_size is 16 (--set), not 32 (default)"),
                    HasSubstr("model.num_classes is 11 (--set), not 10 (job.json)")));
}

// Would end before the others, which would wait for it until comm.timeout.
TEST_F(MixedRanks, AnotherMaxSteps_IsNamed) {
  EXPECT_THAT(output_of("--set train.max_steps=3"),
              HasSubstr("train.max_steps is 3 (--set), not 0 (default)"));
}

// The ranks could not even meet.
TEST_F(MixedRanks, AnotherTransport_IsNamed) {
  EXPECT_THAT(output_of("--set comm.backend=gloo"),
              HasSubstr("comm.backend is \"gloo\" (--set), not \"auto\" (default)"));
}

TEST_F(MixedRanks, OtherData_AreNamed) {
  const char* kFolders = R"({"model": {"name": "lenet", "num_classes": 2},
    "data": {"source": "image_folder", "root": "one", "test": {"folder": ""},
             "image": {"channels": 1, "height": 28, "width": 28}}})";
  write("job.json", kFolders);
  for (const std::string root : {"one", "two"}) {
    for (const std::string name : {"a", "b"}) {
      std::filesystem::create_directories(job_.path(root + "/train/" + name));
      for (int i = 0; i < 40; ++i)
        write(root + "/train/" + name + "/" + std::to_string(i) + ".png", "x");
    }
  }
  write("two/train/b/more.png", "x");
  EXPECT_THAT(output_of("--set data.root=two"), HasSubstr("data.train's samples is 81, not 80"));
}

}  // namespace
}  // namespace fleet
