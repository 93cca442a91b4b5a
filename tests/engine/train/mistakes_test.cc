// Mistakes of users in a network or in a job file, each made by changing one place of a right one:
// all end with exit code 2 and a message that names the place. None says that fleetrun is wrong.
#include <gmock/gmock.h>

#include <functional>

#include "base/text.h"
#include "models/model.h"
#include "tests/errors.h"
#include "train/job.h"
#include "train/session.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Integers = std::vector<int64_t>;
using Build = std::function<VarId(Network&, VarId, const Settings&)>;

Build the_network;  // the one that the model below has

FLEET_MODEL(test_mistaken) {
  def.help = "a test";
  def.image = {1, 8, 8};
  def.schema = model_schema(2);
  def.build = image_classifier([](Network& network, VarId image, const Settings& settings) {
    return the_network(network, image, settings);
  });
}

void define_unary(OpDef& def) {
  def.inputs = {{"x"}};
  def.outputs = {{"y"}};
  def.infer = [](ShapeContext& context) { context.set_like(0, 0); };
}
FLEET_OP(test_without_gradient) { define_unary(def); }
FLEET_OP(test_without_shape) {
  define_unary(def);
  def.infer = nullptr;
}
FLEET_OP(test_mistyped_attribute) {
  define_unary(def);
  def.attributes = {{"kernel", int64_t{1}}};
  def.infer = [](ShapeContext& context) { context.attributes().integer("kernal"); };
}
FLEET_OP(test_unset_gradient) {
  define_unary(def);
  def.gradient = [](GradientContext& context) { context.input_gradient(0); };
}
FLEET_OP(test_gradient_of_another_shape) {
  define_unary(def);
  def.gradient = [](GradientContext& context) {
    context.append("fill", {}, {context.input_gradient(0)}, {{"shape", Integers{1}}});
  };
}

// Builds the Program of the job, for two ranks.
void build(const ConfigTree& tree) {
  const Job job = make_job(tree);
  const Shape image =
      image_shape(job.model_name, job.data.integer("image.channels"),
                  job.data.integer("image.height"), job.data.integer("image.width"));
  build_program(job, {.columns = image_columns(image), .world = 2});
}

// named: what the message must contain.
template <typename Action>
void expect_mistake(const std::string& named, const Action& action) {
  const Error error = thrown_by(action);
  EXPECT_EQ(exit_code_for(error.code()), 2) << error.what();
  EXPECT_THAT(error.what(), AllOf(HasSubstr(named), Not(HasSubstr("bug")), Not(HasSubstr(".cc:")),
                                  Not(HasSubstr(".h:"))));
}

// A job of the_network, for batches of 4.
void build_network() {
  build(ConfigTree::from_json(R"({"model": {"name": "test_mistaken"},
      "data": {"source": "synthetic", "batch_size": 4, "pixels": "float32",
               "image": {"channels": 1, "height": 8, "width": 8}}})",
                              "job.json"));
}

VarId head(Network& n, VarId x) { return n.linear("fc", n.flatten(x), {.features = 2}); }

// A convolution, a pooling and a linear layer, with a change in between.
Build network_with(const std::function<VarId(Network&, VarId)>& change) {
  return [=](Network& n, VarId image, const Settings&) {
    VarId x = n.relu(n.batch_norm("b", n.conv2d("c", image, {.channels = 4, .padding = 1})));
    return head(n, change(n, n.pool(x, {})));
  };
}

TEST(Mistakes, RightNetwork_IsBuilt) {
  the_network = network_with([](Network&, VarId x) { return x; });
  build_network();
}

TEST(Mistakes, Layers_AreNamed) {
  const std::pair<const char*, std::function<VarId(Network&, VarId)>> all[] = {
      {"'c'", [](Network& n, VarId x) { return n.conv2d("c", x, {.channels = 4}); }},
      {"'b'", [](Network& n, VarId x) { return n.batch_norm("b", x); }},
      {"'d'", [](Network& n, VarId x) { return n.conv2d("d", n.flatten(x), {.channels = 4}); }},
      {"'d'", [](Network& n, VarId x) { return n.conv2d("d", x, {}); }},
      {"'d'", [](Network& n, VarId x) { return n.conv2d("d", x, {.channels = -3}); }},
      {"'d'", [](Network& n, VarId x) { return n.conv2d("d", x, {.channels = 4, .kernel = 0}); }},
      {"conv2d 'd", [](Network& n, VarId x) {
         return n.conv2d("d", x, {.channels = 4, .kernel = 20});
       }},
      {"conv2d 'd", [](Network& n, VarId x) {
         return n.conv2d("d", x, {.channels = 4, .stride = 0});
       }},
      {"conv2d 'd", [](Network& n, VarId x) {
         return n.conv2d("d", x, {.channels = 4, .padding = -1});
       }},
      {"conv2d 'd", [](Network& n, VarId x) {
         return n.conv2d("d", x, {.channels = 4, .dilation = 0});
       }},
      {"'d'", [](Network& n, VarId x) { return n.conv2d("d", x, {.channels = 4, .groups = 0}); }},
      {"'d'", [](Network& n, VarId x) { return n.conv2d("d", x, {.channels = 6, .groups = 3}); }},
      {"pool2d", [](Network& n, VarId x) { return n.pool(x, {.kernel = 50}); }},
      {"pool2d", [](Network& n, VarId x) { return n.pool(x, {.type = "maximum"}); }},
      {"pool2d", [](Network& n, VarId x) { return n.pool(x, {.kernel = 2, .padding = 3}); }},
      {"pool", [](Network& n, VarId x) { return n.pool(n.flatten(x), {}); }},
      {"'d'", [](Network& n, VarId x) { return n.linear("d", x, {}); }},
      {"'d'", [](Network& n, VarId x) {
         return n.linear("d", x, {.features = int64_t{1} << 60});
       }},
      {"'d'", [](Network& n, VarId x) { return n.layer_norm("d", n.apply("mean", {x})); }},
      {"dropout", [](Network& n, VarId x) { return n.dropout(x, 1.5); }},
      {"'fc.weight'", [](Network& n, VarId x) {
         n.parameter("fc.weight", {7}, init::constant(0));
         return x;
       }},
      {"'label'", [](Network& n, VarId x) {
         n.parameter("label", {7}, init::constant(0));
         return x;
       }},
      {"'e'", [](Network& n, VarId x) { return n.block("e", n.block("e", x)); }},
      {"'d.weight'", [](Network& n, VarId x) {
         return n.conv2d("d", x, {.channels = n.training() ? 4 : 8});
       }},
      {"'d.weight'", [](Network& n, VarId x) {
         return n.training() ? x : n.conv2d("d", x, {.channels = 4, .padding = 1});
       }},
      {"99999", [](Network& n, VarId) { return n.relu(99999); }},
      {"-1", [](Network& n, VarId) { return n.conv2d("d", kNoVar, {.channels = 4}); }}};
  for (const auto& [named, change] : all) {
    the_network = network_with(change);
    expect_mistake(named, build_network);
  }
}

TEST(Mistakes, Operations_AreNamed) {
  const std::pair<const char*, std::function<VarId(Network&, VarId)>> all[] = {
      {"'relu'", [](Network& n, VarId x) { return n.activation("rellu", x); }},
      {"'softmax'", [](Network& n, VarId x) { return n.apply("sofmax", {x}); }},
      {"elementwise_add", [](Network& n, VarId x) { return n.add(x, n.flatten(x)); }},
      {"elementwise_mul", [](Network& n, VarId x) { return n.scale_channels(x, n.flatten(x)); }},
      {"concat",
       [](Network& n, VarId x) {
         return n.concat({x, n.global_pool(x)});
       }},
      {"concat", [](Network& n, VarId) { return n.concat({}); }},
      {"axis, end, start",
       [](Network& n, VarId x) {
         return n.apply("slice", {x}, {{"begin", int64_t{1}}});
       }},
      {"'axis'",
       [](Network& n, VarId x) {
         return n.apply("slice", {x}, {{"axis", 1.5}});
       }},
      {"slice",
       [](Network& n, VarId x) {
         return n.apply("slice", {x}, {{"axis", int64_t{1}}, {"end", int64_t{9}}});
       }},
      {"slice",
       [](Network& n, VarId x) {
         return n.apply("slice", {x}, {{"axis", (int64_t{1} << 32) + 1}, {"end", int64_t{1}}});
       }},
      {"reshape",
       [](Network& n, VarId x) {
         return n.reshape(x, {0, 5});
       }},
      {"reshape",
       [](Network& n, VarId x) {
         return n.reshape(x, {0, -1, -1});
       }},
      {"reshape",
       [](Network& n, VarId x) {
         return n.reshape(x, {0, 1, 1, 1, 1, 1, -1});
       }},
      {"reshape",
       [](Network& n, VarId x) {
         return n.reshape(x, {int64_t{1} << 40, int64_t{1} << 40, -1});
       }},
      {"transpose",
       [](Network& n, VarId x) {
         return n.transpose(x, {0, 0, 1, 2});
       }},
      {"softmax",
       [](Network& n, VarId x) {
         return n.apply("softmax", {x}, {{"axis", int64_t{7}}});
       }},
      {"matmul",
       [](Network& n, VarId x) { return n.apply("matmul", {n.flatten(x), n.flatten(x)}); }},
      {"'weight'", [](Network& n, VarId x) { return n.apply("conv2d", {x}); }},
      {"relu", [](Network& n, VarId x) { return n.apply("relu", {x, x}); }},
      {"'label'", [](Network& n, VarId x) { return n.apply("cross_entropy", {x}); }},
      {"all_reduce", [](Network& n, VarId x) { return n.apply("all_reduce", {x}); }},
      {"all_gather", [](Network& n, VarId x) { return n.apply("all_gather", {x}); }},
      {"send", [](Network& n, VarId x) { return n.apply("send", {x}); }},
      {"sgd", [](Network& n, VarId x) { return n.apply("sgd", {x, x, x}); }},
      {"float32",
       [](Network& n, VarId x) { return n.apply("cast", {x}, {{"to", std::string("float23")}}); }},
      {"int64",
       [](Network& n,
          VarId x) { return n.add(x, n.apply("cast", {x}, {{"to", std::string("int64")}})); }},
      {"int64",
       [](Network& n,
          VarId
              x) { return n.batch_norm("d", n.apply("cast", {x}, {{"to", std::string("int64")}})); }},
      {"fill", [](Network& n, VarId) { return n.apply("fill", {}, {{"shape", Integers{4, -1}}}); }},
      {"test_without_gradient",
       [](Network& n, VarId x) { return n.apply("test_without_gradient", {x}); }},
      {"test_without_shape",
       [](Network& n, VarId x) { return n.apply("test_without_shape", {x}); }},
      {"'kernel'", [](Network& n, VarId x) { return n.apply("test_mistyped_attribute", {x}); }},
      {"test_unset_gradient",
       [](Network& n, VarId x) { return n.apply("test_unset_gradient", {x}); }},
      {"test_gradient_of_another_shape",
       [](Network& n, VarId x) { return n.apply("test_gradient_of_another_shape", {x}); }}};
  for (const auto& [named, change] : all) {
    the_network = network_with(change);
    expect_mistake(named, build_network);
  }
}

TEST(Mistakes, WhatAModelReturns_IsNamedWithWhatIsRight) {
  const std::pair<const char*, Build> all[] = {
      {"[4, 2]", [](Network& n, VarId x,
                    const Settings&) { return n.linear("fc", n.flatten(x), {.features = 3}); }},
      {"[4, 2]", [](Network& n, VarId x,
                    const Settings&) { return n.conv2d("c", x, {.channels = 2, .padding = 1}); }},
      {"[4, 2]",
       [](Network& n, VarId x, const Settings&) {
         return n.apply("cast", {head(n, x)}, {{"to", std::string("float64")}});
       }},
      {"test_mistaken", [](Network&, VarId, const Settings&) { return kNoVar; }},
      {"test_mistaken", [](Network&, VarId, const Settings&) { return 12345; }},
      {"'chanels'",
       [](Network& n, VarId x, const Settings& settings) {
         return n.linear("fc", n.flatten(x), {.features = settings.integer("chanels")});
       }},
      {"test_mistaken",
       [](Network& n, VarId x, const Settings&) {
         return n.apply("slice", {n.flatten(x)}, {{"axis", int64_t{1}}, {"end", int64_t{2}}});
       }},
      {"model",
       [](Network& n, VarId x, const Settings&) {
         head(n, x);
         return n.apply("slice", {n.flatten(x)}, {{"axis", int64_t{1}}, {"end", int64_t{2}}});
       }},
      {"[3]", [](Network& n, VarId x, const Settings&) {
         n.parameter("kaiming", {3}, init::kaiming_normal_fan_out({3}));
         return head(n, x);
       }}};
  for (const auto& [named, network] : all) {
    the_network = network;
    expect_mistake(named, build_network);
  }
}

// Sets further keys of a right job, "key=value" separated by spaces, and builds it for two ranks.
void build_with(const std::string& settings) {
  ConfigTree tree = ConfigTree::from_json(R"({"model": {"name": "lenet"},
      "data": {"source": "synthetic", "batch_size": 4,
               "image": {"channels": 1, "height": 28, "width": 28}}})",
                                          "job.json");
  for (const std::string& setting : split(settings, ' ')) {
    const size_t equals = setting.find('=');
    tree.set(setting.substr(0, equals), setting.substr(equals + 1), "job.json");
  }
  build(tree);
}

TEST(Mistakes, RightJob_IsBuilt) { build_with(""); }

TEST(Mistakes, KeysOfJobs_AreNamed) {
  constexpr std::pair<const char*, const char*> kAll[] = {
      {"'lenet'", "model.name=lenot"},
      {"model.num_classes", "model.num_classes=0"},
      {"model.num_classes", "model.num_classes=ten"},
      {"model.dropout", "model.droput=0.5"},
      {"'modle'", "modle.name=lenet"},
      {"data.source", "data.sorce=tar"},
      {"data.source", "data.source=imagenet"},
      {"data.batch_size", "data.batch_size=-1"},
      {"data.batch_size", "data.batch_size=1.5"},
      {"data.batch_size", "data.batch_sise=4"},
      {"data.pixels", "data.pixels=float16"},
      {"data.image.height", "data.image.height=28px"},
      {"data.image.channels", "data.image.chanels=1"},
      {"conv2", "data.image.height=4 data.image.width=4"},
      {"optimizer.name", "optimizer.name=adm"},
      {"optimizer.momentum", "optimizer.name=momentum optimizer.momentum=x"},
      {"optimizer.clip", "optimizer.clip=l2"},
      {"optimizer.groups", "optimizer.groups=['layer']"},
      {"optimizer.frozen", "optimizer.frozen=['*']"},
      {"learning_rate.name", "learning_rate.name=cosin"},
      {"learning_rate.base", "learning_rate.base=fast"},
      {"learning_rate.base", "learning_rate.bas=0.1"},
      {"'train'", "train=5"},
      {"train.epochs", "train.epochs=0"},
      {"train.epochs", "train.epoch=1"},
      {"train.on_nan", "train.on_nan=explode"},
      {"train.seed", "train.seed=x"},
      {"train.device", "train.device=tpu"},
      {"train.ema.decay", "train.ema.decay=2"},
      {"train.label_smoothing", "train.label_smoothing=2"},
      {"checkpoint.resume", "checkpoint.resum=auto"},
      {"checkpoint.keep", "checkpoint.keep=-1"},
      {"strategy.amp", "strategy.amp=maybe"},
      {"strategy.amp_configs.incr_ratio", "strategy.amp_config.incr_ratio=2"},
      {"tensor_parallel", "strategy.tensor_parallel=true"},
      {"hybrid_configs.mp_degree", "strategy.hybrid_configs.mp_degree=2"},
      {"hybrid_configs.dp_degree", "strategy.hybrid_configs.dp_degree=3"},
      {"k_steps", "strategy.gradient_merge=true strategy.gradient_merge_configs.k_steps=0"},
      {"stage", "strategy.sharding=true strategy.sharding_configs.stage=7"},
      {"'nothere'", "strategy.recompute=true strategy.recompute_configs.checkpoints=['nothere']"},
      {"'nothere'", "strategy.pipeline=true strategy.pipeline_configs.cut=['nothere']"},
      {"schedule_mode", "strategy.pipeline=true strategy.pipeline_configs.schedule_mode=1B1F"},
      {"num_threads", "strategy.thread_num=3 strategy.execution_strategy.num_threads=4"},
      {"rampup_step",
       "optimizer.name=momentum strategy.dgc=true strategy.dgc_configs.rampup_step=0"},
      {"strategy.pipeline", "strategy.pipeline=true train.ema.decay=0.9"},
      {"adaptive_localsgd", "strategy.adaptive_localsgd=true train.ema.decay=0.9"}};
  for (const auto& [named, settings] : kAll) {
    SCOPED_TRACE(settings);
    expect_mistake(named, [&] { build_with(settings); });
  }
}

TEST(Mistakes, TextsThatAreNoJob_NameTheFile) {
  for (const char* text : {"", "{", "[]", "5", R"({"model")", R"({"model": {"name": "lenet"})",
                           R"({"model": {"name": "lenet"}} x)", R"({"model": "lenet"})",
                           R"({"model": {"name": ["lenet"]}})", "\x01\x02"}) {
    SCOPED_TRACE(text);
    expect_mistake("", [&] { build(ConfigTree::from_json(text, "job.json")); });
  }
}

}  // namespace
}  // namespace fleet
