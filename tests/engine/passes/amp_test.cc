#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "models/model.h"
#include "models/training.h"
#include "ops/mixed_precision.h"
#include "passes/backward.h"
#include "passes/pass.h"

namespace fleet {
namespace {

using ::testing::HasSubstr;

using Names = std::vector<std::string>;

struct Built {
  Program program;
  Training training;
};

Built built(const std::string& model) {
  Built result;
  const ModelDef& def = model_registry().get(model);
  result.training = build_training(
      result.program, {.model = model,
                       .model_settings = ConfigTree::from_json("{}", "test").validate(def.schema),
                       .batch = 2,
                       .columns = image_columns(def.image)});
  return result;
}

void with_backward(Built& net) {
  append_backward(net.program, net.training.forward, net.training.loss, 1);
  run_pass("amp_parameters", net.program, {});
}

// "type: how many in the low type of how many", by the first output, of one section.
std::map<std::string, std::pair<int, int>> types_in(const Program& program,
                                                    const std::string& section) {
  std::map<std::string, std::pair<int, int>> found;
  for (const Op& op : program.ops()) {
    if (program.sections()[op.section].name != section) continue;
    VarId first = kNoVar;
    for (VarId id : op.outputs) {
      if (first == kNoVar) first = id;
    }
    auto& [low, all] = found[op.type()];
    low += program.var(first).dtype == DType::kBFloat16;
    ++all;
  }
  return found;
}

using Counts = std::pair<int, int>;

TEST(Amp, Lenet_RunsInTheLowTypeUpToTheLoss) {
  Built net = built("lenet");
  run_pass("amp", net.program, {});
  auto types = types_in(net.program, "forward");
  EXPECT_EQ(types["conv2d"], Counts(2, 2));
  EXPECT_EQ(types["fc"], Counts(3, 3));
  EXPECT_EQ(types["relu"], Counts(4, 4));
  EXPECT_EQ(types["pool2d"], Counts(2, 2));
  EXPECT_EQ(types["flatten"], Counts(1, 1));
  EXPECT_EQ(types["softmax_with_cross_entropy"], Counts(0, 1));
  EXPECT_EQ(types["mean"], Counts(0, 1));
  // The image, two weights and biases, three more of each, and the logits back to float32.
  EXPECT_EQ(types["cast"], Counts(11, 12));
  EXPECT_EQ(types_in(net.program, "fetch")["accuracy"], Counts(0, 1));
  EXPECT_EQ(types_in(net.program, "fetch").count("cast"), 0u);  // the forward section's serves
}

// The loss of a language model: its products run in the low type, what follows from it does not.
TEST(Amp, Float32ResultOfAWhiteOperation_StaysFloat32) {
  for (const bool pure : {false, true}) {
    Program program;
    const SectionId forward = program.add_section("forward", {});
    const VarId hidden = program.parameter("hidden", {4, 8}, {});
    const VarId head = program.parameter("head", {16, 8}, {});
    const VarId labels = program.feed("labels", DType::kInt64, {4});
    const VarId weight = program.feed("weight", DType::kFloat32, {4});
    const VarId divisor = program.feed("divisor", DType::kFloat32, {1});
    const VarId sum = program.emit(forward, "linear_cross_entropy", {hidden, head, labels, weight},
                                   {}, "losses")[0];
    const VarId scaled = program.emit(forward, "scale", {sum}, {{"scale", 2.0}}, "scaled")[0];
    program.emit(forward, "elementwise_div", {scaled, divisor}, {}, "loss");
    run_pass("amp", program, {}, {{"pure", pure}});
    auto types = types_in(program, "forward");
    EXPECT_EQ(types["cast"], Counts(2, 2)) << pure;
    EXPECT_EQ(types["scale"], Counts(0, 1)) << pure;
    EXPECT_EQ(types["elementwise_div"], Counts(0, 1)) << pure;
  }
}

// What a task computes from losses of samples, or from numbers that it predicts.
TEST(Amp, LossesOfTexts_AreFloat32) {
  for (const bool pure : {false, true}) {
    Program program;
    const SectionId forward = program.add_section("forward", {});
    const VarId x = program.parameter("x", {4, 8}, {}), w = program.parameter("w", {8, 3}, {});
    const VarId labels = program.feed("labels", DType::kInt64, {4});
    const VarId weight = program.feed("weight", DType::kFloat32, {4});
    const VarId targets = program.feed("targets", DType::kFloat32, {4, 3});
    const VarId logits = program.emit(forward, "matmul", {x, w})[0];
    const VarId losses = program.emit(forward, "softmax_with_cross_entropy", {logits, labels})[0];
    const VarId both = program.emit(forward, "elementwise_add", {losses, losses})[0];
    const VarId counted = program.emit(forward, "elementwise_mul", {both, weight})[0];
    const VarId mean = program.emit(forward, "mean", {counted})[0];
    const VarId sum = program.emit(forward, "scale", {mean}, {{"scale", 4.0}})[0];
    const VarId errors = program.emit(forward, "elementwise_sub", {logits, targets})[0];
    const VarId squares = program.emit(forward, "elementwise_mul", {errors, errors})[0];
    run_pass("amp", program, {}, {{"pure", pure}});
    EXPECT_EQ(program.var(logits).dtype, DType::kBFloat16);
    for (const VarId id : {losses, both, counted, mean, sum, errors, squares}) {
      EXPECT_EQ(program.var(id).dtype, DType::kFloat32) << program.var(id).name << pure;
    }
  }
}

// Operations as another file would add them: amp has no list of names that has to know them.
void define_unary(OpDef& def) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}
FLEET_OP(test_white) {
  define_unary(def);
  def.add_trait<MixedPrecision>().precision = Precision::kWhite;
}
FLEET_OP(test_without_traits) { define_unary(def); }
FLEET_OP(test_own_types) {
  define_unary(def);
  def.add_trait<MixedPrecision>().on_custom_lists = false;
}

TEST(Amp, TraitOfAnOperation_DecidesItsType) {
  Program program;
  const SectionId section = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {4});
  const VarId low = program.emit(section, "test_white", {x})[0];
  const VarId wide = program.emit(section, "test_without_traits", {low})[0];
  run_pass("amp", program, {});
  EXPECT_EQ(program.var(low).dtype, DType::kBFloat16);
  EXPECT_EQ(program.var(wide).dtype, DType::kFloat32);
}

// The low type goes through the operations of a transformer: tables and scales stay float32.
TEST(Amp, OperationsOfTextModels_FollowTheirInputs) {
  for (const bool pure : {false, true}) {
    Program program;
    const SectionId section = program.add_section("forward", {});
    const VarId ids = program.feed("ids", DType::kInt64, {1, 2});
    const VarId weight = program.parameter("weight", {5, 8}, {}),
                scale = program.parameter("scale", {8}, {});
    const VarId x = program.emit(section, "embedding", {ids, weight})[0];
    const VarId low = program.emit(section, "test_white", {x})[0];
    const auto normed = program.emit(section, "add_rms_norm", {low, x, scale});
    const auto table = program.emit(section, "rope_table", {ids}, {{"dim", int64_t{4}}});
    const VarId heads = program.emit(section, "reshape", {normed[0]},
                                     {{"shape", std::vector<int64_t>{0, 0, 2, 4}}})[0];
    const VarId turned = program.emit(section, "rope", {heads, table[0], table[1]})[0];
    const VarId gated = program.emit(section, "swiglu", {turned})[0];
    const VarId last = program.emit(section, "gelu", {gated})[0];
    run_pass("amp", program, {}, {{"pure", pure}});
    EXPECT_EQ(program.var(x).dtype, pure ? DType::kBFloat16 : DType::kFloat32);
    for (const VarId id : {low, normed[0], normed[1], turned, gated, last}) {
      EXPECT_EQ(program.var(id).dtype, DType::kBFloat16) << program.var(id).name;
    }
    for (const VarId id : {normed[2], table[0], table[1], scale}) {
      EXPECT_EQ(program.var(id).dtype, DType::kFloat32) << program.var(id).name;
    }
    EXPECT_EQ(types_in(program, "forward")["cast"].second, 1);  // of the weight or x
  }
}

TEST(Amp, OperationWithItsOwnTypes_IsRefusedOnACustomList) {
  Program program = built("lenet").program;
  try {
    run_pass("amp", program, {}, {{"white_list", Names{"test_own_types"}}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kUsage);
  }
}

TEST(Amp, Backward_FollowsTheForwardTypes) {
  Built net = built("lenet");
  run_pass("amp", net.program, {});
  with_backward(net);
  auto types = types_in(net.program, "backward");
  EXPECT_EQ(types["conv2d_weight_grad"], Counts(2, 2));
  EXPECT_EQ(types["conv2d_data_grad"], Counts(1, 1));
  EXPECT_EQ(types["fc_weight_grad"], Counts(3, 3));
  EXPECT_EQ(types["relu_grad"], Counts(4, 4));
  EXPECT_EQ(types["softmax_with_cross_entropy_grad"], Counts(0, 1));
  EXPECT_EQ(types["cast"], Counts(1, 1));  // of the logits' gradient: none of a parameter's
}

TEST(Amp, Resnet_KeepsBatchNormsStatisticsAndParametersInFloat32) {
  Built net = built("resnet20");
  run_pass("amp", net.program, {});
  with_backward(net);
  const Program& program = net.program;
  int norms = 0;
  for (const Op& op : program.ops()) {
    const bool forward = op.type() == "batch_norm", backward = op.type() == "batch_norm_grad";
    if (!forward && !backward) continue;
    ++norms;
    EXPECT_EQ(program.var(op.inputs[0]).dtype, DType::kBFloat16);
    EXPECT_EQ(program.var(op.outputs[0]).dtype, DType::kBFloat16);
    for (int i = 1; i < (forward ? 5 : 4); ++i) {
      EXPECT_EQ(program.var(op.inputs[i]).dtype, DType::kFloat32);
    }
    for (size_t i = 1; i < op.outputs.size(); ++i) {
      if (op.outputs[i] == kNoVar) continue;
      EXPECT_EQ(program.var(op.outputs[i]).dtype, DType::kFloat32);
    }
  }
  EXPECT_EQ(norms, 3 * 21);  // forward, evaluate, backward
  EXPECT_EQ(types_in(program, "forward")["elementwise_add"], Counts(9, 9));
}

TEST(Amp, Mobilenet_RunsInTheLowType) {
  Built net = built("mobilenet_v1");
  run_pass("amp", net.program, {});
  for (const char* section : {"forward", "evaluate"}) {
    auto types = types_in(net.program, section);
    for (const char* type : {"conv2d", "batch_norm", "relu", "pool2d", "flatten", "fc"}) {
      EXPECT_GT(types[type].second, 0) << type;
      EXPECT_EQ(types[type].first, types[type].second) << type;
    }
    EXPECT_EQ(types["softmax_with_cross_entropy"], Counts(0, 1));
  }
}

// x -> conv -> softmax (black) -> relu -> add(relu, conv) -> conv
struct Chain {
  Program program;
  VarId conv, softmax, relu, add, last;
  Chain() {
    const SectionId forward = program.add_section("forward", {});
    const VarId image = program.feed("image", DType::kFloat32, {2, 3, 8, 8});
    const auto weight = [&](const std::string& name) {
      return program.parameter(name, {3, 3, 1, 1}, {});
    };
    conv = program.emit(forward, "conv2d", {image, weight("a.weight"), kNoVar}, {}, "a")[0];
    softmax = program.emit(forward, "softmax", {conv}, {}, "softmax")[0];
    relu = program.emit(forward, "relu", {softmax}, {}, "relu")[0];
    add = program.emit(forward, "elementwise_add", {relu, conv}, {}, "add")[0];
    last = program.emit(forward, "conv2d", {add, weight("b.weight"), kNoVar}, {}, "b")[0];
  }
  DType type(VarId id) const { return program.var(id).dtype; }
  std::string refusal(Attributes options) {
    try {
      run_pass("amp", program, {}, std::move(options));
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST(Amp, BlackProducer_MakesGrayOperationsFloat32) {
  Chain chain;
  run_pass("amp", chain.program, {});
  EXPECT_EQ(chain.type(chain.conv), DType::kBFloat16);
  EXPECT_EQ(chain.type(chain.softmax), DType::kFloat32);
  EXPECT_EQ(chain.type(chain.relu), DType::kFloat32);
  EXPECT_EQ(chain.type(chain.add), DType::kFloat32);  // though its other input is white's
  EXPECT_EQ(chain.type(chain.last), DType::kBFloat16);
}

TEST(Amp, SeveralReaders_ShareOneCast) {
  Chain chain;
  run_pass("amp", chain.program, {});
  int casts = 0;
  for (const Op& op : chain.program.ops()) {
    casts += op.type() == "cast" && op.inputs[0] == chain.conv;
  }
  EXPECT_EQ(casts, 1);  // for softmax and add
}

TEST(Amp, Pure_MakesGrayOperationsLow) {
  Chain chain;
  run_pass("amp", chain.program, {}, {{"pure", true}, {"low", std::string("float16")}});
  EXPECT_EQ(chain.type(chain.softmax), DType::kFloat32);
  EXPECT_EQ(chain.type(chain.relu), DType::kFloat16);
  EXPECT_EQ(chain.type(chain.add), DType::kFloat16);
}

TEST(Amp, CustomLists_GoOverTheOperationsClass) {
  Chain chain;
  run_pass("amp", chain.program, {},
           {{"white_list", Names{"softmax"}}, {"black_list", Names{"elementwise_add"}}});
  EXPECT_EQ(chain.type(chain.softmax), DType::kBFloat16);
  EXPECT_EQ(chain.type(chain.relu), DType::kBFloat16);
  EXPECT_EQ(chain.type(chain.add), DType::kFloat32);
}

TEST(Amp, BlackVariables_MakeWhatTouchesThemFloat32) {
  Chain chain;
  run_pass("amp", chain.program, {}, {{"black_variables", Names{"b.weight"}}});
  EXPECT_EQ(chain.type(chain.conv), DType::kBFloat16);
  EXPECT_EQ(chain.type(chain.last), DType::kFloat32);
  Chain other;
  run_pass("amp", other.program, {}, {{"black_variables", Names{"a.out"}}});
  EXPECT_EQ(other.type(other.conv), DType::kFloat32);
}

TEST(Amp, BlackVariablesOfTraining_AreMeantInEvaluationToo) {
  Built net = built("lenet");
  run_pass("amp", net.program, {}, {{"black_variables", Names{"fc3.out"}}});
  EXPECT_EQ(net.program.var(net.training.output("logits")).dtype, DType::kFloat32);
  EXPECT_EQ(net.program.var(net.training.evaluate_output("logits")).dtype, DType::kFloat32);
}

// From bytes to the low type in one operation.
TEST(Amp, OperationThatChoosesItsType_MakesTheLowTypeAtOnce) {
  Program program;
  const VarId pixels = program.feed("pixels", DType::kUInt8, {2, 8, 8, 4});
  const VarId weight = program.parameter("weight", {3, 3, 1, 1}, {});
  for (const bool training : {true, false}) {
    const SectionId section = program.add_section(training ? "forward" : "evaluate",
                                                  {.training = training, .evaluation = !training});
    const VarId image = program.emit(
        section, "normalize_image", {pixels, kNoVar},
        {{"mean", std::vector<double>{0, 0, 0}}, {"std", std::vector<double>{1, 1, 1}}})[0];
    program.emit(section, "conv2d", {image, weight, kNoVar}, {}, "conv");
  }
  run_pass("amp", program, {});
  ASSERT_EQ(program.ops().size(), 6u);  // in each section these two and the weight's cast
  for (const int first : {0, 3}) {
    const Op &image = program.ops()[first], &conv = program.ops()[first + 2];
    EXPECT_EQ(image.type(), "normalize_image");
    EXPECT_EQ(program.var(image.outputs[0]).dtype, DType::kBFloat16);
    EXPECT_EQ(conv.inputs[0], image.outputs[0]);
  }
}

TEST(Amp, BadLists_AreRefused) {
  EXPECT_THAT(Chain().refusal({{"white_list", Names{"relu"}}, {"black_list", Names{"relu"}}}),
              HasSubstr("amp: 'relu' is on both"));
  EXPECT_EQ(Chain().refusal({{"white_list", Names{"rellu"}}}),
            "unknown operation 'rellu'; did you mean 'relu'?");
  for (const char* type : {"sgd", "relu_grad", "all_reduce", "cast", "update_loss_scaling"}) {
    const std::string why = std::string(": amp does not choose the type of '") + type +
                            "'; list operations of the forward part only";
    EXPECT_EQ(Chain().refusal({{"white_list", Names{type}}}), "amp custom_white_list" + why);
    EXPECT_EQ(Chain().refusal({{"black_list", Names{type}}}), "amp custom_black_list" + why);
  }
  EXPECT_THAT(
      Chain().refusal({{"black_variables", Names{"a.weigth"}}}),
      ::testing::AllOf(HasSubstr("no variable 'a.weigth'"), HasSubstr("did you mean 'a.weight'?")));
}

TEST(Amp, ListsWithoutUse_AreSaid) {
  std::ostringstream captured_log;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>(
      "test", std::make_shared<spdlog::sinks::ostream_sink_mt>(captured_log)));
  Chain chain;
  run_pass("amp", chain.program, {},
           {{"white_list", Names{"gelu"}}, {"black_list", Names{"conv2d"}}});
  spdlog::set_default_logger(before);
  EXPECT_THAT(captured_log.str(), testing::HasSubstr("not in this network: gelu"));
  EXPECT_THAT(captured_log.str(),
              testing::ContainsRegex("warning.*amp: 0 of 5 forward operations"));
}

// A weight that a float32 operation reads too: both gradients are added up, in float32.
TEST(AmpParameters, ParameterReadInBothTypes_HasOneFloat32Gradient) {
  Program program;
  const SectionId forward = program.add_section("forward", {});
  const VarId x = program.feed("x", DType::kFloat32, {4, 4});
  const VarId weight = program.parameter("weight", {4, 4}, {});
  const VarId low = program.emit(forward, "matmul", {x, weight}, {}, "low")[0];
  const VarId high = program.emit(forward, "softmax", {weight}, {}, "high")[0];
  const VarId both = program.emit(forward, "elementwise_add", {low, high}, {}, "both")[0];
  const VarId loss = program.emit(forward, "mean", {both}, {}, "loss")[0];
  run_pass("amp", program, {});
  append_backward(program, forward, loss, 1);
  run_pass("amp_parameters", program, {});
  EXPECT_EQ(program.var(program.gradient(weight)).dtype, DType::kFloat32);
  EXPECT_NE(program.copy_of(weight), kNoVar);
  for (const Op& op : program.ops()) {
    if (op.type() == "matmul" && op.section == forward) {
      EXPECT_EQ(op.inputs[1], program.copy_of(weight));
    }
    if (op.type() == "softmax") {
      EXPECT_EQ(op.inputs[0], weight);
    }
  }
}

TEST(AmpParameters, Refresh_MakesEveryCopyOnce) {
  Built net = built("lenet");
  run_pass("amp", net.program, {});
  with_backward(net);
  const SectionId refresh = net.program.find_section("refresh");
  ASSERT_GE(refresh, 0);
  int copies = 0;
  for (const Op& op : net.program.ops()) {
    if (op.section != refresh) continue;
    ++copies;
    EXPECT_EQ(net.program.copy_of(op.inputs[0]), op.outputs[0]);
  }
  EXPECT_EQ(copies, 10);
  const Predicate& when = net.program.sections()[refresh].when;
  EXPECT_TRUE(when.holds({.refresh = true}));
  EXPECT_FALSE(when.holds({}));
  EXPECT_FALSE(when.holds({.evaluate = true}));
  EXPECT_FALSE(net.program.sections()[net.training.forward].when.holds({.refresh = true}));
}

}  // namespace
}  // namespace fleet
