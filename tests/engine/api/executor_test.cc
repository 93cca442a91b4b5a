// A program's own loop trains what fleet-worker's does.
#include "api/executor.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "api/optimizer.h"
#include "api/parameter_server.h"
#include "base/error.h"
#include "base/file.h"
#include "exec/backend.h"
#include "tests/errors.h"
#include "train/trainer.h"

namespace fleet {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using testing::ElementsAre;

const Values kData = {{"source", "synthetic"}, {"batch_size", 8},     {"train.samples", 64},
                      {"test.samples", 24},    {"image.channels", 1}, {"image.height", 28},
                      {"image.width", 28}};

std::string folder(const std::string& name) {
  const std::string path = testing::TempDir() + "api_executor." + name;
  std::filesystem::remove_all(path);
  return path;
}

struct Trained {
  Worker worker = Worker(World{});
  Model model = Model("lenet", {{"dropout", 0.5}});
  Loader loader = model.train_loader(kData);
  std::unique_ptr<ProgramExecutor> exe;

  explicit Trained(const DistributedStrategy& strategy = {}, const Values& more = {}) {
    distributed_optimizer(Momentum(0.05, 0.9, {{"weight_decay", 1e-4}}), strategy)
        .minimize(model.loss());
    Values keys = {{"train.device", "cpu"}, {"train.seed", 3}};
    keys.insert(keys.end(), more.begin(), more.end());
    exe = std::make_unique<ProgramExecutor>(worker, model, keys);
  }
  void train(int64_t steps, int64_t first = 0) {
    loader.start_epoch(0, first);
    for (int64_t i = 0; i < steps; ++i) exe->run(*loader.next());
  }
};

TEST(ProgramExecutor, SameJob_TrainsBitForBitWhatATrainerDoes) {
  Trained own;
  own.train(5);
  ConfigTree tree = ConfigTree::from_json(
      R"({"model": {"name": "lenet", "dropout": 0.5},
          "data": {"source": "synthetic", "batch_size": 8, "train": {"samples": 64},
                   "image": {"channels": 1, "height": 28, "width": 28}},
          "optimizer": {"name": "momentum", "momentum": 0.9, "weight_decay": 1e-4},
          "learning_rate": {"base": 0.05},
          "train": {"device": "cpu", "seed": 3, "max_steps": 5, "evaluate_every": 0},
          "checkpoint": {"at_end": false}})",
      "test");
  tree.set("train.output", folder("trainer"), "test");
  const Job job = make_job(tree);
  const DeviceChoice choice = choose_device("cpu", 0);
  Trainer trainer(job, *choice.device, {});
  trainer.run();
  Executor& executor = trainer.session().executor();
  for (const VarId id : executor.program().parameters()) {
    const std::string& name = executor.program().var(id).name;
    EXPECT_EQ(own.exe->values(name), executor.values<float>(id)) << name;
  }
}

// Epochs of 8 batches, updates of 3: the second update of a run takes batches 3 to 5, wherever it
// goes on.
TEST(ProgramExecutor, ClassWeightsOfMergedSteps_FollowTheSteps) {
  DistributedStrategy strategy;
  strategy.set("gradient_merge", true).set("gradient_merge_configs.k_steps", 3);
  const Values weights = {{"train.class_weights", "[1, 5, 1, 1, 9, 1, 1, 2, 1, 1]"}};
  const auto finish = [](Trained& own, int64_t epoch, int64_t first) {
    for (; epoch < 2; ++epoch, first = 0) {
      own.loader.start_epoch(epoch, first);
      for (const data::Batch* batch = own.loader.next(); batch; batch = own.loader.next()) {
        own.exe->run(*batch);
      }
    }
    return own.exe->values("fc1.weight");
  };
  Trained whole(strategy, weights);
  const auto wanted = finish(whole, 0, 0);
  Trained first(strategy, weights);
  first.train(4);
  const std::string root = folder("class_weights");
  first.exe->save(root);
  Trained second(strategy, weights);
  const TrainingPosition position = second.exe->load(root);
  EXPECT_EQ(finish(second, position.epoch, position.batch), wanted);
}

TEST(ProgramExecutor, GlobalBatch_IsWhatTheRanksShare) {
  const Worker worker{World{}};
  Model model("lenet");
  Loader loader = model.train_loader({{"source", "synthetic"},
                                      {"global_batch_size", 16},
                                      {"image.channels", 1},
                                      {"image.height", 28},
                                      {"image.width", 28}});
  distributed_optimizer(Momentum(0.05, 0.9), {}).minimize(model.loss());
  ProgramExecutor exe(worker, model, {{"train.device", "cpu"}});
  loader.start_epoch(0);
  EXPECT_EQ(loader.next()->size, 16);
}

TEST(ProgramExecutor, FetchList_HasTheValuesInItsOrder) {
  Trained own;
  own.loader.start_epoch(0);
  const auto values = own.exe->run(*own.loader.next(), {"acc1", "loss", "learning_rate"});
  ASSERT_EQ(values.size(), 3U);
  EXPECT_GE(values[0], 0);
  EXPECT_LE(values[0], 1);
  EXPECT_NEAR(values[1], 2.3, 0.5);  // of ten classes
  EXPECT_FLOAT_EQ(static_cast<float>(values[2]), 0.05F);
  EXPECT_THAT(own.exe->run(*own.loader.next(), {}), ElementsAre());
  own.exe->set_learning_rate(0.01);
  EXPECT_THAT(own.exe->run(*own.loader.next(), {"learning_rate"}), ElementsAre(0.01));
  const int64_t before = own.exe->steps();
  try {
    own.exe->run(*own.loader.next(), {"los"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "ProgramExecutor: cannot fetch 'los'; did you mean 'loss'?");
  }
  EXPECT_EQ(own.exe->steps(), before);
}

TEST(ProgramExecutor, Resumed_EndsWhereAnUninterruptedRunDoes) {
  Trained whole;
  whole.train(6);
  const std::string root = folder("resume");
  {
    Trained first;
    first.train(4);
    EXPECT_EQ(first.exe->save(root), root + "/step_00000004");
  }
  Trained second;
  const TrainingPosition position = second.exe->load(root);
  EXPECT_EQ(position.batch, 4);
  second.train(2, position.batch);
  EXPECT_EQ(second.exe->steps(), 6);
  EXPECT_EQ(second.exe->values("fc1.weight"), whole.exe->values("fc1.weight"));
  Trained other;
  EXPECT_THROW(other.exe->load(folder("nothing")), Error);
}

TEST(ProgramExecutor, CheckpointOfAnotherBatchOrSeed_IsRefused) {
  const std::string root = folder("another");
  {
    Trained first;
    first.train(2);
    first.exe->save(root);
  }
  for (const Values& other :
       {Values{{"train.device", "cpu"}, {"train.seed", 4}},
        Values{{"train.device", "cpu"}, {"data.batch_size", 16}, {"train.seed", 3}}}) {
    Worker worker(World{});
    Model model("lenet", {{"dropout", 0.5}});
    Loader loader = model.train_loader(kData);
    distributed_optimizer(Momentum(0.05, 0.9, {{"weight_decay", 1e-4}}), {}).minimize(model.loss());
    ProgramExecutor exe(worker, model, other);
    const std::vector<float> before = exe.values("fc1.weight");
    EXPECT_THAT(thrown_by([&] { exe.load(root); }), IsUsageError());
    EXPECT_EQ(exe.steps(), 0);
    EXPECT_EQ(exe.values("fc1.weight"), before) << "a refused checkpoint changes nothing";
  }
}

TEST(ProgramExecutor, Checkpoint_HasImageSizeAndValidationSplit) {
  const std::string root = folder("card");
  Worker worker(World{});
  Model model("lenet", {{"dropout", 0.5}});
  Values data = {{"source", "synthetic"},    {"batch_size", 8},     {"train.samples", 64},
                 {"validation_split", 0.25}, {"image.channels", 1}, {"image.height", 28},
                 {"image.width", 28}};
  Loader loader = model.train_loader(data);
  distributed_optimizer(Momentum(0.05, 0.9), {}).minimize(model.loss());
  ProgramExecutor exe(worker, model, Values{{"train.device", "cpu"}});
  const std::string saved = exe.save(root);
  EXPECT_THAT(read_file(saved + "/model.safetensors").substr(0, 20'000),
              testing::HasSubstr("[1,28,28]"));
  EXPECT_THAT(read_file(saved + "/state.json"), testing::HasSubstr("0.25 of each class"));
}

TEST(ProgramExecutor, Evaluation_CountsEachTestSampleOnce) {
  Trained own;
  Loader test = own.model.test_loader();
  const MetricSums sums = own.exe->evaluate(test);
  EXPECT_EQ(sums.items(), 24);
  EXPECT_NEAR(sums.mean_loss(), 2.3, 0.5);
}

TEST(ProgramExecutor, Strategy_RewritesTheProgram) {
  DistributedStrategy strategy;
  strategy.set("gradient_merge", true).set_fields("gradient_merge_configs", {{"k_steps", 2}});
  EXPECT_THAT(Trained(strategy).exe->program_text(), testing::HasSubstr("every 2"));
}

// Own images through a network with batch normalisation: what one bad batch leaves behind.
struct OwnImages {
  static constexpr int64_t kBatch = 4, kPixels = 3 * 32 * 32;
  Worker worker = Worker(World{});
  Model model = Model("resnet20", {});
  std::unique_ptr<ProgramExecutor> exe;
  std::vector<float> images = std::vector<float>(kBatch * kPixels);
  std::vector<int64_t> labels = {0, 1, 2, 3};

  explicit OwnImages(const char* on_nan) {
    model.own_data({3, 32, 32}, kBatch);
    distributed_optimizer(Momentum(0.05, 0.9), {}).minimize(model.loss());
    exe = std::make_unique<ProgramExecutor>(
        worker, model, Values{{"train.device", "cpu"}, {"train.on_nan", on_nan}});
  }
  data::Batch batch(int number, bool bad) {
    for (size_t i = 0; i < images.size(); ++i) {
      images[i] = static_cast<float>((i * 31 + number * 17) % 127) / 64 - 1;
    }
    if (bad) images[500] = NAN;
    data::Batch made;
    made.size = kBatch;
    made.images = images;
    made.labels = labels;
    return made;
  }
};

TEST(ProgramExecutor, ABadBatchSkipped_LeavesNothingBehind) {
  OwnImages with("skip"), without("skip");
  for (const auto& [number, bad] : {std::pair(0, false), {1, true}, {2, false}}) {
    const std::vector<double> loss = with.exe->run(with.batch(number, bad), {"loss"});
    EXPECT_EQ(std::isnan(loss[0]), bad) << "relu keeps NaN";
    if (!bad) without.exe->run(without.batch(number, false));
  }
  for (const std::string name :
       {"conv1.weight", "bn1.running_mean", "bn1.running_var", "fc.weight", "fc.weight.momentum"}) {
    EXPECT_EQ(with.exe->values(name), without.exe->values(name)) << name;
  }
}

TEST(ProgramExecutor, ABadBatch_EndsTheProgramByDefault) {
  OwnImages own("stop");
  own.exe->run(own.batch(0, true));
  EXPECT_THROW(own.exe->save(folder("nan")), NotFiniteError);
  own.exe->run(own.batch(1, false));
  const std::string saved = own.exe->save(folder("good"));
  own.exe->load(saved);  // its parameters are what they were before the bad batch
}

TEST(ProgramExecutor, WrongOrderOfCalls_NamesTheMissingCall) {
  const auto failure = [](auto action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUsage);
      return error.what();
    }
    return "no error";
  };
  Worker worker(World{});
  Model model("lenet");
  EXPECT_THAT(failure([&] { distributed_optimizer(Sgd(0.1)).minimize(model.loss()); }),
              AllOf(HasSubstr("minimize: the model has no data"), HasSubstr("train_loader()"),
                    HasSubstr("own_data()")));
  Loader loader = model.train_loader(kData);
  EXPECT_THAT(failure([&] { loader.next(); }), HasSubstr("loader: is not open yet"));
  EXPECT_THAT(failure([&] { ProgramExecutor(worker, model); }),
              AllOf(HasSubstr("the model has no optimizer"), HasSubstr("minimize(model.loss())")));
  EXPECT_THAT(failure([&] {
                distributed_optimizer(Sgd(0.1, {{"momentun", 1}})).minimize(model.loss());
              }),
              HasSubstr("unknown key 'optimizer.momentun'"));
  distributed_optimizer(Sgd(0.1)).minimize(model.loss());
  EXPECT_THAT(failure([&] { distributed_optimizer(Sgd(0.1)).minimize(model.loss()); }),
              HasSubstr("the model has an optimizer already"));
  EXPECT_EQ(failure([] { Model("lenot"); }), "unknown model 'lenot'; did you mean 'lenet'?");
}

TEST(ProgramExecutor, LoaderInTheWrongOrder_NamesTheCall) {
  Trained own;
  EXPECT_THAT(thrown_by([&] { own.loader.next(); }), IsUsageError("next"));
  for (const int64_t first : {-1, 9}) {  // an epoch has eight batches
    EXPECT_THAT(thrown_by([&] { own.loader.start_epoch(0, first); }), IsUsageError("start_epoch"));
  }
}

// The rates of four steps on own batches; the rate halves after each epoch.
std::vector<double> rates_of_own_batches(int64_t batches_per_epoch, const std::string& root) {
  Worker worker(World{});
  Model model("lenet", {{"num_classes", 2}});
  model.own_data({1, 28, 28}, 4, batches_per_epoch);
  Optimizer sgd = Sgd(0.1).schedule("step", {{"base", 0.1}, {"gamma", 0.5}, {"period", 1}}, 2);
  distributed_optimizer(sgd).minimize(model.loss());
  ProgramExecutor exe(worker, model,
                      {{"train.device", "cpu"}, {"data.class_names", {"left", "right"}}});
  std::vector<float> images(4 * 28 * 28, 0.5F);
  std::vector<int64_t> labels = {0, 1, 0, 1};
  data::Batch batch;
  batch.images = images;
  batch.labels = labels;
  batch.size = 4;
  std::vector<double> rates;
  for (int i = 0; i < 4; ++i) rates.push_back(exe.run(batch, {"learning_rate"})[0]);
  exe.save(root);
  return rates;
}

TEST(ProgramExecutor, OwnBatches_NeedTheLengthOfAnEpochForSuchASchedule) {
  const std::string root = folder("epochs");
  EXPECT_THAT(rates_of_own_batches(2, root), ElementsAre(0.1, 0.1, 0.05, 0.05));
  EXPECT_THAT(read_file(root + "/step_00000004/model.safetensors").substr(0, 20'000),
              testing::HasSubstr("right"));
  EXPECT_THAT(thrown_by([&] { rates_of_own_batches(0, root); }), IsUsageError());
}

// Images and labels are enough; weights and keys are made.
TEST(ProgramExecutor, OwnBatches_NeedImagesAndLabelsOnly) {
  Worker worker(World{});
  Model model("lenet", {{"dropout", 0.5}});
  model.own_data({1, 28, 28}, 4);
  distributed_optimizer(Sgd(0.1)).minimize(model.loss());
  ProgramExecutor exe(worker, model, {{"train.device", "cpu"}});
  std::vector<float> images(4 * 28 * 28, 0.5F);
  std::vector<int64_t> labels = {1, 2, 1, 2};
  data::Batch batch;
  batch.images = images;
  batch.labels = labels;
  batch.size = 4;
  const double first = exe.run(batch, {"loss"})[0];
  for (int i = 0; i < 20; ++i) exe.run(batch);
  EXPECT_LT(exe.run(batch, {"loss"})[0], first);
  batch.labels = std::span(labels).first(3);
  EXPECT_THAT(usage_failure([&] { exe.run(batch); }), HasSubstr("3 values of label instead of 4"));
  batch.labels = labels;
  batch.images = std::span(images).first(28 * 28);
  EXPECT_THAT(usage_failure([&] { exe.run(batch); }),
              HasSubstr("784 values of image instead of 3136"));
  batch.size = 3;
  EXPECT_THROW(exe.run(batch), Error);
}

TEST(ProgramExecutor, OwnBatches_WithPartsOfAnotherSize_AreRefused) {
  Worker worker(World{});
  Model model("lenet", {{"num_classes", 2}});
  model.own_data({1, 28, 28}, 4);
  distributed_optimizer(Sgd(0.1)).minimize(model.loss());
  ProgramExecutor exe(worker, model,
                      {{"train.device", "cpu"}, {"train.class_weights", {1.0, 2.0}}});
  std::vector<float> images(4 * 28 * 28, 0.5F);
  std::vector<int64_t> labels = {1, 0, 1, 0};
  const std::vector<float> weights = {1, 2, 3};
  data::Batch batch;
  batch.images = images;
  batch.labels = labels;
  batch.size = 4;
  batch.class_weights = std::span(weights).first(2);
  exe.run(batch);
  batch.class_weights = weights;
  EXPECT_THAT(thrown_by([&] { exe.run(batch); }), IsUsageError("ProgramExecutor"));
}

TEST(ProgramExecutor, SkippedWeights_AreNamedByTheExecutorsKeys) {
  const std::string root = folder("skipped_weights");
  Trained own;
  const std::string file = own.exe->save(root) + "/model.safetensors";
  Worker worker(World{});
  Model model("lenet", {{"num_classes", 3}});
  Loader loader = model.train_loader(kData);
  distributed_optimizer(Sgd(0.1)).minimize(model.loss());
  ProgramExecutor exe(worker, model,
                      {{"train.device", "cpu"}, {"checkpoint.weights_skip", {"fc3.*"}}});
  exe.load_weights(file);
  EXPECT_EQ(exe.values("fc1.weight"), own.exe->values("fc1.weight"));
}

// Of a job with servers, as the launcher's environment says.
World world_with_servers(int server) {
  World world;
  world.servers = {"127.0.0.1:6170", "127.0.0.1:6171"};
  world.server = server;
  return world;
}

TEST(ParameterServer, CallsOfTheOtherRole_AreRefused) {
  const Worker trainer(world_with_servers(-1)), server(world_with_servers(1));
  EXPECT_TRUE(trainer.is_worker());
  EXPECT_EQ(server.server_index(), 1);
  Model model("lenet");
  EXPECT_THAT(thrown_by([&] { init_server(server, model); }), IsUsageError("ProgramExecutor"));
  model.train_loader(kData);
  distributed_optimizer(Momentum(0.05, 0.9)).minimize(model.loss());
  EXPECT_THAT(thrown_by([&] { init_server(trainer, model); }), IsUsageError("init_server"));
  EXPECT_THAT(thrown_by([&] { init_worker(server, model); }), IsUsageError("ProgramExecutor"));
  init_server(server, model);
}

TEST(ParameterServer, WorkerWithoutServers_TrainsCollectively) {
  const Worker worker = Worker(World{});
  Model model("lenet");
  Loader loader = model.train_loader(kData);
  distributed_optimizer(Momentum(0.05, 0.9)).minimize(model.loss());
  ProgramExecutor exe = init_worker(worker, model, {{"train.device", "cpu"}});
  loader.start_epoch(0);
  exe.run(*loader.next());
  EXPECT_EQ(thrown_by([&] { shrink(exe, 3); }).code(), ErrorCode::kUnsupported);
  const std::string saved = save_persistables(exe, folder("persistables"));
  stop_worker(exe);
  EXPECT_TRUE(std::filesystem::exists(saved + "/model.safetensors"));
}

}  // namespace
}  // namespace fleet
