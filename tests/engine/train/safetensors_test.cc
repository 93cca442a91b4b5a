#include "train/safetensors.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace fleet {
namespace {

class Safetensors : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = ::testing::TempDir() + "/safetensors_test_" + std::to_string(::getpid());
    HostTensor tensor{DType::kFloat32, {2, 3}, std::vector<char>(24)};
    const float values[] = {1, 2, 3, 4, 5, 6};
    std::memcpy(tensor.data.data(), values, sizeof values);
    file_.tensors["layer.weight"] = tensor;
    file_.tensors["a"] = {DType::kInt64, {}, std::vector<char>(8, 7)};
    file_.metadata["format"] = "pt";
    write_safetensors(path_, file_);
  }
  void TearDown() override { std::filesystem::remove(path_); }
  std::string message() {
    try {
      read_safetensors(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.what();
    }
    return "no error";
  }
  // A file with eight bytes of values, of which the last four are the float 1.
  void write_header(const std::string& header) {
    const uint64_t length = header.size();
    const float one = 1;
    std::string file(reinterpret_cast<const char*>(&length), sizeof length);
    file += header + std::string(4, '\1');
    write_file_atomically(path_, file.append(reinterpret_cast<const char*>(&one), sizeof one));
  }
  std::string path_;
  TensorFile file_;
};

TEST_F(Safetensors, WriteThenRead_IsIdentity) {
  const TensorFile back = read_safetensors(path_);
  EXPECT_EQ(back.metadata, file_.metadata);
  ASSERT_EQ(back.tensors.size(), 2u);
  const HostTensor& tensor = back.tensors.at("layer.weight");
  EXPECT_EQ(tensor.shape, (Shape{2, 3}));
  ASSERT_EQ(tensor.data.size(), 24u);
  EXPECT_EQ(std::memcmp(tensor.data.data(), file_.tensors["layer.weight"].data.data(), 24), 0);
  EXPECT_EQ(back.tensors.at("a").dtype, DType::kInt64);
}

// More than one piece is summed, and values come when they are asked for, also after a copy.
TEST_F(Safetensors, OpenedFile_GivesTheSameValuesLater) {
  HostTensor large{DType::kFloat32, {200'000}, TensorBytes(800'000)};
  for (int i = 0; i < 200'000; ++i) reinterpret_cast<float*>(large.data.data())[i] = i;
  file_.tensors["large"] = large;
  write_safetensors(path_, file_);
  const TensorFile whole = read_safetensors(path_, Checksum::kRequired);
  const TensorFile opened = open_safetensors(path_, Checksum::kRequired);
  EXPECT_EQ(opened.metadata, file_.metadata);
  const std::string copy = path_ + ".copy";
  write_safetensors(copy, opened);
  const TensorFile copied = read_safetensors(copy, Checksum::kRequired);
  std::filesystem::remove(copy);
  ASSERT_EQ(opened.tensors.size(), 3u);
  for (const auto& [name, tensor] : opened.tensors) {
    EXPECT_EQ(tensor.data.size(), 0u) << "nothing is read yet";
    const std::string expected(whole.tensors.at(name).values().span().data(),
                               whole.tensors.at(name).data.size());
    for (const TensorBytes& values : {tensor.values(), copied.tensors.at(name).values()}) {
      EXPECT_TRUE(std::string(values.data(), values.size()) == expected) << name;
    }
  }
}

TEST_F(Safetensors, OpenedFile_IsComparedWithItsChecksumNow) {
  std::string content = read_file(path_);
  content.back() ^= 1;
  write_file_atomically(path_, content);
  EXPECT_THROW(open_safetensors(path_, Checksum::kRequired), DamagedFile);
  write_file_atomically(path_, content.substr(0, content.size() - 8));
  EXPECT_THROW(open_safetensors(path_, Checksum::kRequired), DamagedFile);
}

// As an executor keeps it: 4800 x 20 elements in blocks of 16 rows, more than is written at once.
TEST_F(Safetensors, ValuesInALayout_AreWrittenRowMajor) {
  const Shape shape{4800, 20};
  const Layout layout = Layout::blocked(shape, {320, 16}, {{0, 16}});
  TensorFile file;
  HostTensor tensor{DType::kFloat32, shape, TensorBytes(4800 * 20 * 4), layout};
  auto* values = reinterpret_cast<float*>(tensor.data.data());
  for (int64_t i = 0; i < 4800; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      values[layout.offset(std::array<int64_t, 2>{i, j})] = static_cast<float>(i * 20 + j);
    }
  }
  file.tensors["weight"] = tensor;
  write_safetensors(path_, file);
  const TensorFile back = read_safetensors(path_, Checksum::kRequired);
  const auto* read = reinterpret_cast<const float*>(back.tensors.at("weight").data.data());
  for (int64_t i = 0; i < shape.elements(); ++i) ASSERT_EQ(read[i], static_cast<float>(i));
}

TEST_F(Safetensors, NoRegularFile_IsRefusedAtOnce) {
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_NE(message().find("not a regular file"), std::string::npos);
}

TEST_F(Safetensors, HeaderIsAlignedAndJson) {
  const std::string content = read_file(path_);
  uint64_t length = 0;
  std::memcpy(&length, content.data(), 8);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(content[8], '{');
  EXPECT_EQ(content.size(), 8 + length + 24 + 8);
}

TEST_F(Safetensors, TruncatedAnywhere_IsAUsageErrorNamingTheFile) {
  const std::string content = read_file(path_);
  for (size_t size : {size_t{0}, size_t{5}, size_t{20}, content.size() - 1}) {
    write_file_atomically(path_, content.substr(0, size));
    const std::string text = message();
    EXPECT_NE(text.find(path_ + ": truncated"), std::string::npos) << text;
  }
}

TEST_F(Safetensors, SizesThatMakeNoSense_AreRefused) {
  // 2^32 x 2^32 elements are 2^64, which a 64-bit number takes for none.
  for (const char* shape :
       {"[-1,-1]", "[4294967296,4294967296]", "[0,9223372036854775807,9]", "[1,1,1,1,1,1,1]"}) {
    const std::string count = shape[1] == '-' ? "4" : "0";
    const std::string header = std::string(R"({"a":{"dtype":"F32","shape":)") + shape +
                               R"(,"data_offsets":[0,)" + count + "]}}";
    const uint64_t length = header.size();
    std::string file(reinterpret_cast<const char*>(&length), sizeof length);
    file += header + std::string(4, 'x');
    write_file_atomically(path_, file);
    EXPECT_THROW(read_safetensors(path_), DamagedFile) << shape;
  }
}

// All of the format, and one that it may get.
TEST_F(Safetensors, TypesThatNoParameterHas_AreNamedNotRead) {
  for (const char* type : {"BOOL", "I8", "I16", "U16", "U32", "U64", "F8_E4M3", "F8_E5M2",
                           "F8_E8M0", "F4", "C64", "F6_E2M3"}) {
    write_header(std::string(R"({"mask":{"dtype":")") + type +
                 R"(","shape":[4],"data_offsets":[0,4]},)" +
                 R"("a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})");
    for (const TensorFile& file : {read_safetensors(path_), open_safetensors(path_)}) {
      EXPECT_EQ(file.foreign, (std::map<std::string, std::string>{{"mask", type}}));
      EXPECT_EQ(file.tensors.size(), 1u) << type;
      EXPECT_EQ(*reinterpret_cast<const float*>(file.tensors.at("a").values().data()), 1);
    }
  }
  for (const char* entry :
       {R"("BOOL","shape":[4],"data_offsets":[0,90])", R"("BOOL","shape":[4],"data_offsets":[4,0])",
        R"("bool?","shape":[4],"data_offsets":[0,4])"}) {
    write_header(std::string(R"({"mask":{"dtype":)") + entry + "}}");
    EXPECT_THROW(read_safetensors(path_), DamagedFile) << entry;
  }
}

TEST_F(Safetensors, OtherFile_IsAUsageError) {
  write_file_atomically(path_, std::string(8, '\0') + "not json");
  EXPECT_NE(message().find("the header is not"), std::string::npos);
}

}  // namespace
}  // namespace fleet
