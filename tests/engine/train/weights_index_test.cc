#include "train/weights_index.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "tests/errors.h"
#include "train/torch_file.h"

namespace fleet {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class WeightsIndex : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  static HostTensor byte(char value) { return {DType::kUInt8, {1}, std::vector<char>(1, value)}; }
  void write_part(const std::string& name, const std::map<std::string, HostTensor>& tensors) {
    TensorFile file;
    file.tensors = tensors;
    write_safetensors(folder_ + "/" + name, file);
  }
  std::string write_index(const std::string& text) {
    write_file_atomically(index_, text);
    return index_;
  }
  const std::string folder_ = ::testing::TempDir() + "/weights_index_" + std::to_string(::getpid());
  const std::string index_ = folder_ + "/model.safetensors.index.json";
};

TEST_F(WeightsIndex, AllItsFiles_AreRead) {
  write_part("one.safetensors", {{"a", byte(1)}, {"b", byte(9)}});
  write_part("two.safetensors", {{"b", byte(2)}, {"c", byte(3)}});
  for (const std::string start : {"", " \n"}) {
    const TensorFile file = read_weights(write_index(
        start + R"({"metadata": {"total_size": 3}, "weight_map": {"a": "one.safetensors",)" +
        R"("b": "two.safetensors", "c": "two.safetensors"}})"));
    EXPECT_EQ(file.tensors.size(), 3u);
    EXPECT_EQ(*file.tensors.at("a").data.data(), 1);
    EXPECT_EQ(*file.tensors.at("b").data.data(), 2) << "the index says in which file it is";
    EXPECT_EQ(*file.tensors.at("c").data.data(), 3);
  }
}

TEST_F(WeightsIndex, MissingFilesAndTensors_AreNamed) {
  write_part("one.safetensors", {{"a", byte(1)}});
  write_index(R"({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}})");
  const Error missing = thrown_by([&] { read_weights(index_); });
  EXPECT_THAT(missing, IsError(ErrorCode::kNotFound, index_));
  EXPECT_THAT(missing.failure(), HasSubstr("'two.safetensors'"));
  write_index(R"({"weight_map": {"a": "one.safetensors", "b": "one.safetensors"}})");
  EXPECT_THAT(thrown_by([&] { read_weights(index_); }), IsUsageError(folder_ + "/one.safetensors"));
}

TEST_F(WeightsIndex, OtherJsonAndOtherFolders_AreRefused) {
  for (const char* text :
       {"{}", R"({"weight_map": {}})", R"({"weight_map": {"a": 3}})",
        R"({"weight_map": {"a": "../one.safetensors"}})", R"({"weight_map": {"a": "/etc/passwd"}})",
        R"({"model": "lenet"})", R"({"weight_map":)"}) {
    write_index(text);
    EXPECT_THAT(thrown_by([&] { read_weights(index_); }), IsUsageError(index_)) << text;
  }
}

// Its length may have the code of '{' as its first byte.
TEST_F(WeightsIndex, SafetensorsFile_IsNotTakenForJson) {
  EXPECT_FALSE(begins_like_json(std::string("{\0\0\0\0\0\0\0{\"", 10)));
  EXPECT_FALSE(begins_like_json(std::string(" {\0\0\0\0\0\0{\"", 10)));
  EXPECT_FALSE(begins_like_json(""));
  EXPECT_TRUE(begins_like_json("{}"));
}

}  // namespace
}  // namespace fleet
