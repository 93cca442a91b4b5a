// Files of torch.save() (scripts/make_torch_files.py), whole and damaged.
#include "train/torch_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/file.h"
#include "base/json.h"
#include "tensor/float16.h"
#include "tests/errors.h"
#include "tests/test_paths.h"
#include "train/torch_writer.h"
#include "train/weights_pickle.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::string golden(const std::string& name) {
  return source_folder() + "/tests/golden/torch_" + name + ".pth";
}

template <typename T>
std::vector<double> values(const TensorFile& file, const std::string& name) {
  const HostTensor& tensor = file.tensors.at(name);
  EXPECT_EQ(tensor.data.size(), static_cast<size_t>(tensor.shape.elements()) * sizeof(T));
  const auto* data = reinterpret_cast<const T*>(tensor.data.data());
  std::vector<double> all;
  for (int64_t i = 0; i < tensor.shape.elements(); ++i) {
    all.push_back(static_cast<double>(static_cast<float>(data[i])));
  }
  return all;
}

// As the script makes them.
void expect_ramp(const TensorFile& file, const std::string& name, const Shape& shape) {
  ASSERT_TRUE(file.tensors.contains(name)) << name;
  EXPECT_EQ(file.tensors.at(name).shape, shape) << name;
  const auto all = values<float>(file, name);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<double>(i) / 4 - 1) << name;
}

class TorchFile : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove(path_); }
  // "" if the bytes are read as a file.
  std::string failure(const std::string& bytes) {
    // A new file: some file systems write to the disk what replaces another one.
    fs::remove(path_);
    std::ofstream(path_, std::ios::binary) << bytes;
    return usage_failure([&] { read_weights(path_); });
  }
  static std::string pickle_failure(const std::string& bytes) {
    try {
      WeightsPickle(bytes, "pickle");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  const std::string path_ = ::testing::TempDir() + "/torch_file_" + std::to_string(::getpid());
};

TEST_F(TorchFile, StateDicts_OfBothFormatsAndOfTrainingPrograms) {
  for (const char* name : {"zip", "legacy", "training"}) {
    const TensorFile file = read_weights(golden(name));
    expect_ramp(file, "conv.weight", {3, 2, 3, 3});
    expect_ramp(file, "conv.bias", {3});
    expect_ramp(file, "bn.running_var", {3});
    expect_ramp(file, "fc.weight", {4, 5});
    EXPECT_EQ(file.tensors.size(), 9u) << name;
    EXPECT_EQ(file.tensors.at("bn.num_batches_tracked").dtype, DType::kInt64);
  }
}

// Its options are an argparse.Namespace, which is read as a dict; nothing is executed.
TEST_F(TorchFile, TrainingOfTimm_GivesItsOptionsAndItsAverage) {
  const TensorFile file = read_weights(golden("timm"));
  expect_ramp(file, "fc.weight", {4, 5});
  const fleet::Json options = fleet::Json::parse(file.metadata.at("pretrained_cfg"));
  EXPECT_EQ(options.at("architecture").get<std::string>(), "resnet18");
  EXPECT_EQ(options.at("mean").get<std::vector<double>>(), (std::vector<double>{0.5, 0.25, 0.125}));
  EXPECT_EQ(options.at("crop_pct").get<double>(), 0.875);
  EXPECT_EQ(options.at("input_size").get<std::vector<int64_t>>(),
            (std::vector<int64_t>{3, 96, 96}));
  EXPECT_FALSE(options.contains("std"));  // None
  const TensorFile average = read_weights(golden("timm"), true);
  EXPECT_EQ(values<float>(average, "fc.weight")[0], 0);
  EXPECT_THAT(usage_failure([] { read_weights(golden("zip"), true); }), HasSubstr("weights_ema"));
  const TensorFile outline = open_outline(golden("timm"));
  EXPECT_EQ(outline.tensors.at("fc.weight").shape, (Shape{4, 5}));
  EXPECT_EQ(outline.tensors.at("fc.weight").data.size(), 0u);
  EXPECT_EQ(outline.metadata, file.metadata);
}

TEST_F(TorchFile, WrittenFile_IsReadAsItWas) {
  const TensorFile file = read_weights(golden("views"));
  write_torch_file(path_, file);
  const TensorFile again = read_weights(path_);
  ASSERT_EQ(again.tensors.size(), file.tensors.size());
  for (const auto& [name, tensor] : file.tensors) {
    const HostTensor& read = again.tensors.at(name);
    EXPECT_EQ(read.shape, tensor.shape) << name;
    EXPECT_EQ(read.dtype, tensor.dtype) << name;
    EXPECT_EQ(std::string(read.data.data(), read.data.size()),
              std::string(tensor.data.data(), tensor.data.size()))
        << name;
  }
}

TEST_F(TorchFile, ViewsAndTypes_AreWhatTheyAreInPyTorch) {
  const TensorFile file = read_torch_file(golden("views"));
  expect_ramp(file, "whole", {6, 4});
  EXPECT_EQ(file.tensors.at("transposed").shape, (Shape{4, 6}));
  const auto turned = values<float>(file, "transposed");
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(turned[i], (i % 6 * 4 + i / 6) / 4.0 - 1);
  EXPECT_THAT(values<float>(file, "row"), ElementsAre(1, 1.25, 1.5, 1.75));
  EXPECT_THAT(values<float>(file, "column"), ElementsAre(-0.75, 0.25, 1.25, 2.25, 3.25, 4.25));
  EXPECT_THAT(values<float>(file, "scalar"), ElementsAre(2.5));
  EXPECT_EQ(file.tensors.at("scalar").shape, Shape());
  expect_ramp(file, "parameter", {2});
  EXPECT_THAT(values<Float16>(file, "half"), ElementsAre(-1, -0.75, -0.5));
  EXPECT_THAT(values<BFloat16>(file, "bfloat16"), ElementsAre(-1, -0.75, -0.5));
  EXPECT_THAT(values<double>(file, "double"), ElementsAre(-1, -0.75, -0.5));
  EXPECT_THAT(values<int64_t>(file, "long"), ElementsAre(1, -2, 3));
  EXPECT_EQ(file.tensors.at("empty").shape, (Shape{0, 3}));
}

// Their bytes are passed over.
TEST_F(TorchFile, TypesThatNoParameterHas_AreNamedNotRead) {
  std::string bytes = read_file(golden("legacy"));
  const std::string of = "LongStorage", as = "ComplexFloatStorage";  // of the same width
  for (size_t at = bytes.find(of); at != std::string::npos; at = bytes.find(of, at + as.size())) {
    bytes.replace(at, of.size(), as);
  }
  write_file_atomically(path_, bytes);
  const TensorFile file = read_weights(path_);
  EXPECT_EQ(file.foreign, (std::map<std::string, std::string>{{"bn.num_batches_tracked", as}}));
  EXPECT_EQ(file.tensors.size(), 8u);
  expect_ramp(file, "fc.weight", {4, 5});
}

// A module is code: its class would be imported.
TEST_F(TorchFile, Module_IsRefusedByTheNameItAsksFor) {
  EXPECT_THAT(failure(read_file(golden("module"))), HasSubstr("asks for '__main__.Net'"));
}

TEST_F(TorchFile, Code_IsNotExecuted) {
  const std::string marker = path_ + ".executed";
  const std::string call = "cposix\nsystem\n(X\x10\x00\x00\x00touch " + marker + "tR.";
  EXPECT_THAT(pickle_failure("\x80\x02" + call), HasSubstr("asks for 'posix.system'"));
  EXPECT_THAT(pickle_failure("\x80\x02"
                             "c__builtin__\neval\n."),
              Not(""));
  EXPECT_THAT(pickle_failure("\x80\x02i__main__\nX\n."), HasSubstr("instruction 0x69"));
  EXPECT_FALSE(fs::exists(marker));
}

TEST_F(TorchFile, NestedOrEndless_IsNoCrash) {
  std::string nested = "\x80\x02";
  for (int i = 0; i < 2'000'000; ++i) nested += ']';
  for (int i = 0; i < 1'999'999; ++i) nested += 'a';
  EXPECT_EQ(pickle_failure(nested + "."), "");
  EXPECT_THAT(pickle_failure(std::string("\x80\x02") + std::string(1000, '(')),
              HasSubstr("cut off"));
  EXPECT_NE(pickle_failure(std::string("\x80\x02X\xff\xff\xff\xff")), "");
  EXPECT_THAT(pickle_failure("\x80\x02"
                             "aaa."),
              HasSubstr("reads a missing value"));
  EXPECT_NE(pickle_failure("\x80\x02h\x07."), "");
}

TEST_F(TorchFile, Truncated_IsRefusedAtEveryLength) {
  for (const char* name : {"zip", "legacy"}) {
    const std::string whole = read_file(golden(name));
    for (size_t size = 0; size < whole.size(); size += size < 200 ? 1 : 61) {
      EXPECT_NE(failure(whole.substr(0, size)), "") << name << " cut at " << size;
    }
  }
}

// With any bits flipped, a file is read or refused, in memory proportional to its size. Zips have
// checksums.
TEST_F(TorchFile, Mutated_IsReadOrRefused) {
  std::mt19937 random(5);
  for (const char* name : {"zip", "legacy", "views"}) {
    const std::string whole = read_file(golden(name));
    int refused = 0;
    for (int round = 0; round < 400; ++round) {
      std::string bytes = whole;
      for (unsigned flips = 1 + random() % 4; flips > 0; --flips) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      refused += !failure(bytes).empty();
    }
    EXPECT_GT(refused, 0) << name;
    EXPECT_LT(refused, 400) << name;
  }
}

TEST_F(TorchFile, FlippedBitOfATensor_IsFoundInAZip) {
  std::string bytes = read_file(golden("zip"));
  const float value = 15.0f / 4 - 1;  // in the middle of conv.weight
  const size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&value), sizeof value));
  ASSERT_NE(at, std::string::npos);
  bytes[at] ^= 1;
  EXPECT_THAT(failure(bytes), HasSubstr("checksum"));
}

TEST_F(TorchFile, OtherFiles_AreNone) {
  EXPECT_FALSE(is_torch_file(source_folder() + "/tests/golden/lenet.safetensors"));
  EXPECT_THAT(failure("PK\x03\x04 and nothing else"), HasSubstr("truncated"));
  EXPECT_NE(failure(""), "");
}

}  // namespace
}  // namespace fleet
