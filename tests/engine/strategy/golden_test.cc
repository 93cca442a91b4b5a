// Strategies as releases of Paddle saved them (golden/make_golden.py): all of them can be read.
#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "strategy/names.h"
#include "strategy/strategy_file.h"
#include "tests/captured_log.h"
#include "tests/engine/strategy/strategy_text.h"
#include "tests/test_paths.h"

namespace fleet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path kFolder =
    std::filesystem::path(source_folder()) / "tests/engine/strategy/golden";

StrategyProto golden(const std::string& name) {
  StrategyProto proto;
  merge_strategy_file(kFolder / (name + ".prototxt"), &proto);
  return proto;
}

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kFolder)) {
    if (entry.path().extension() == ".prototxt") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

TEST(PaddlesFiles, OfEachRelease_AreReadAndRunUnlessTheyAskForWhatIsNotThere) {
  const std::vector<std::string> names = golden_names();
  EXPECT_GE(names.size(), 18u);
  for (const std::string& name : names) {
    SCOPED_TRACE(name);
    const StrategyProto proto = golden(name);
    if (name.ends_with("_on")) {
      EXPECT_THROW(Strategy(proto, {.ranks = 8, .nodes = 2}), Error);
    } else {
      EXPECT_NO_THROW(Strategy(proto, {.ranks = 8, .nodes = 2}));
    }
  }
}

TEST(PaddlesFiles, Example_SaysWhatItSaid) {
  for (const char* release : {"2.0", "2.1", "2.6.2", "3.3.1"}) {
    SCOPED_TRACE(release);
    const StrategyProto proto = golden(std::string("paddle_") + release + "_example");
    EXPECT_TRUE(proto.amp());
    EXPECT_EQ(proto.amp_configs().init_loss_scaling(), 128);
    EXPECT_EQ(proto.amp_configs().decr_ratio(), 0.5f);
    EXPECT_THAT(proto.amp_configs().custom_white_list(), ElementsAre("conv2d", "matmul_v2"));
    EXPECT_EQ(proto.nccl_comm_num(), 2);
    EXPECT_TRUE(proto.build_strategy().fuse_bn_act_ops());
    EXPECT_TRUE(proto.build_strategy().enable_auto_fusion());
    if (std::string(release) == "3.3.1") continue;  // has no execution strategy
    EXPECT_EQ(proto.execution_strategy().num_threads(), 3);
    EXPECT_EQ(proto.execution_strategy().num_iteration_per_drop_scope(), 100);
  }
}

TEST(PaddlesFiles, BothGenerationsOfSharding_AreRead) {
  EXPECT_EQ(golden("paddle_2.0_on").sharding_configs().fuse_broadcast_mb(), 16);
  EXPECT_EQ(golden("paddle_2.0_on").pipeline_configs().micro_batch(), 12);
  EXPECT_EQ(golden("paddle_2.1_on").sharding_configs().segment_broadcast_mb(), 16);
  EXPECT_EQ(golden("paddle_2.1_on").pipeline_configs().micro_batch_size(), 12);
}

TEST(PaddlesFiles, FieldsOfLaterReleases_ArePassedOverWithALineForDebugging) {
  const std::string log = captured_log([] {
    spdlog::default_logger()->set_level(spdlog::level::debug);
    golden("paddle_3.3.1_copied");
  });
  for (const char* field : {"build_strategy.fused_attention", "recompute_configs.enable_tuning",
                            "hybrid_configs.mp_configs.sync_param", "qat_configs.algo"}) {
    EXPECT_THAT(log, HasSubstr(field));
  }
}

// A file with only the copies that Paddle's setters make: one line names the fields that always
// hold, one those of parameter servers (Paddle writes "a_sync: true").
TEST(PaddlesFiles, Copied_SaysLittle) {
  const std::string log = captured_log([] { Strategy(golden("paddle_2.6.2_copied")); });
  EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 3) << log;
}

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct Field {
  std::string path, type, initial;
};

// Of golden/paddle_RELEASE_fields.txt.
std::vector<Field> fields_of(const std::string& release) {
  std::vector<Field> fields;
  const std::string file = kFolder / ("paddle_" + release + "_fields.txt");
  for (const std::string& line : split(read_file(file), '\n')) {
    std::vector<std::string> words = split(line, ' ');
    words.resize(3);
    if (!words[0].empty()) fields.push_back({words[0], words[1], words[2]});
  }
  EXPECT_GT(fields.size(), 80u);
  return fields;
}

std::string initial_text(const FieldDescriptor& field) {
  if (field.is_repeated()) return "list";
  const std::unique_ptr<Message> blank(google::protobuf::MessageFactory::generated_factory()
                                           ->GetPrototype(field.containing_type())
                                           ->New());
  std::string text;
  google::protobuf::TextFormat::PrintFieldValueToString(*blank, &field, -1, &text);
  return text;
}

TEST(PaddlesFields, OfEachRelease_AreHereWithTheirTypesAndDefaults) {
  for (const char* release : {"2.6.2", "3.3.1"}) {
    for (const Field& field : fields_of(release)) {
      const FieldDescriptor* found = find_field(field.path);
      ASSERT_NE(found, nullptr) << release << " " << field.path;
      EXPECT_EQ(found->cpp_type_name(), field.type) << field.path;
      if (field.path == "without_graph_optimization") continue;  // false before 2.5
      EXPECT_EQ(initial_text(*found), field.initial) << release << " " << field.path;
    }
  }
}

// Each field another than its default.
void set_all(Message* message) {
  const Reflection& reflection = *message->GetReflection();
  for (int i = 0; i < message->GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor* field = message->GetDescriptor()->field(i);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      if (!field->is_repeated()) set_all(reflection.MutableMessage(message, field));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_BOOL) {
      reflection.SetBool(message, field, !field->default_value_bool());
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT32) {
      field->is_repeated() ? reflection.AddInt32(message, field, 7)
                           : reflection.SetInt32(message, field, 7);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_FLOAT) {
      field->is_repeated() ? reflection.AddFloat(message, field, 7)
                           : reflection.SetFloat(message, field, 7);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM) {
      reflection.SetEnumValue(message, field, 2);
    } else {
      field->is_repeated() ? reflection.AddString(message, field, "x")
                           : reflection.SetString(message, field, "x");
    }
  }
}

TEST(PaddlesFields, WhatIsWrittenForARelease_IsWhatItHas) {
  StrategyProto all;
  set_all(&all);
  for (const auto& [release, version] : {std::pair("2.0", "2.0"), std::pair("2.1", "2.1"),
                                         std::pair("2.6", "2.6.2"), std::pair("3.3", "3.3.1")}) {
    std::vector<std::string> left_out;
    strategy_text(all, release, &left_out);
    std::vector<std::string> there;
    for (const Field& field : fields_of(version)) there.push_back(field.path);
    for (const std::string& path : field_paths()) {
      if (is_unsupported_field(path)) continue;  // never in a strategy
      const bool has = std::find(there.begin(), there.end(), path) != there.end();
      const bool written = std::find(left_out.begin(), left_out.end(), path) == left_out.end();
      EXPECT_EQ(written, has) << release << " " << path;
    }
  }
}

// A file with any content is read or refused.
TEST(PaddlesFiles, Damaged_AreReadOrRefused) {
  std::mt19937 random(1);
  std::vector<std::string> texts;
  for (const std::string& name : golden_names()) {
    texts.push_back(read_file(kFolder / (name + ".prototxt")));
  }
  const std::string letters = "{}<>[]:;,.-_\"'#\\ \n019aTe";
  int refused = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = texts[random() % texts.size()];
    for (int changes = 1 + random() % 4; changes > 0 && !text.empty(); --changes) {
      const size_t at = random() % text.size();
      if (random() % 2) text[at] = letters[random() % letters.size()];
      if (random() % 3 == 0) text.erase(at, 1 + random() % 9);
    }
    try {
      strategy_proto(text);
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::kUsage || error.code() == ErrorCode::kUnsupported)
          << error.what();
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace fleet
