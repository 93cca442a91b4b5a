// segmentation: a class of each pixel of an image; cross entropy of the pixels that have one.
//
// mask [N, H, W] has the classes, 255 where there is none, and labelled_pixels [N] the number of
// pixels that have one. The loss of a sample is the mean over those pixels, and the loss of a step
// the mean over the samples of the whole update that pad no batch: every rank knows their number
// before the step, so the ranks do not matter. (torchvision takes the mean over the labelled pixels
// of a rank's batch, which weighs an image by its labelled pixels, and depends on the ranks.)
//
// With class weights the loss of a step is PyTorch's CrossEntropyLoss(weight, ignore_index=255) of
// the batches of all ranks as one: the sum of the weighted losses of their pixels by the sum of the
// weights.
#include <array>
#include <cstddef>

#include "base/error.h"
#include "models/label_losses.h"
#include "models/named_metrics.h"
#include "models/pixel_metrics.h"
#include "models/predicted_pixels.h"
#include "models/task.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

constexpr const char* kAuxLogits = "aux_logits";
constexpr const char* kPixelWeights = "pixel_weights";

bool has_auxiliary(const TaskContext& context) {
  return context.model().has("aux") && context.model().boolean("aux") &&
         context.settings().number("aux_weight") > 0;
}

template <typename T>
std::span<const T> values_in(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)};
}

// The sum of the weights of the classes of all labelled pixels in a batch.
double weights_of_pixels(
    const std::function<std::span<const std::byte>(const std::string&)>& column) {
  const auto mask = values_in<uint8_t>(column("mask"));
  const auto samples = values_in<float>(column("weight"));
  const auto weights = values_in<float>(column("class_weights"));
  const size_t pixels = mask.size() / samples.size();
  std::array<int64_t, 256> counts = {};
  for (size_t n = 0; n < samples.size(); ++n) {
    if (samples[n] == 0) continue;
    for (const uint8_t label : mask.subspan(n * pixels, pixels)) ++counts[label];
  }
  double sum = 0;
  for (size_t c = 0; c < weights.size(); ++c) sum += static_cast<double>(counts[c]) * weights[c];
  return sum;
}

std::vector<FeedDef> pixel_feeds(const TaskContext& context) {
  const int64_t classes = context.classes();
  if (classes > kUnlabelledPixel) {
    throw Error(ErrorCode::kUsage,
                std::to_string(classes) + " classes, and a mask of bytes has at most 255",
                "model.num_classes", "set it to at most 255");
  }
  std::vector<FeedDef> feeds = {
      {"mask", DType::kUInt8, context.shape("mask")},
      {"labelled_pixels", DType::kFloat32, context.shape("labelled_pixels")},
      {"weight", DType::kFloat32, {context.batch()}}};
  if (!context.options.class_weights) {
    feeds.push_back({"sample_denominator", DType::kFloat32, {1}, true, false});
    return feeds;
  }
  if (!context.settings().text("class_weights.rule").empty()) {
    throw Error(ErrorCode::kUsage, "counts the labels of samples, and here pixels have them",
                "train.class_weights=" + context.settings().text("class_weights.rule"),
                "give a list with a weight for each class");
  }
  feeds.push_back({"class_weights", DType::kFloat32, {classes}, false, false});
  feeds.push_back({kPixelWeights, DType::kFloat32, {1}, true, false, weights_of_pixels});
  return feeds;
}

MetricTable pixel_table(const TaskContext& context) {
  MetricTable table{.sums = {"loss", "weight", "hits", "top_hits", "all", "pixels", "samples"},
                    .headline = "mIoU",
                    .items = "weight"};
  const bool weighs = context.options.class_weights;
  if (weighs) table.sums.insert(table.sums.end(), {"pixel_weights", "weighted_samples"});
  table.metrics = {
      {.name = "loss", .sum = "loss", .divisor = weighs ? "pixel_weights" : "weight"},
      {.name = "pixel_accuracy", .sum = "hits", .divisor = "pixels", .larger_is_better = true},
      {.name = "mIoU", .larger_is_better = true, .collected = true}};
  add_named_metrics(context, MetricInput::kPixels, &table);
  return table;
}

void check_logits(const TaskBuilder& task, const std::string& output) {
  const Shape mask = task.var(task.feed("mask")).shape;
  const Shape wanted = {mask[0], task.context().classes(), mask[1], mask[2]};
  const Shape& own = task.var(task.output(output)).shape;
  if (own == wanted) return;
  throw Error(ErrorCode::kUsage, "returns " + output + " " + own.text(),
              "model '" + task.context().options.model + "'",
              "return a row of num_classes maps, each of the size of the masks: " + wanted.text());
}

// Classes last, as losses and accuracies have them.
VarId with_classes_last(TaskBuilder& task, const std::string& output) {
  check_logits(task, output);
  return task.emit("transpose", {task.output(output)}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}},
                   output + "_rows");
}

// float32 [N]: the sum over the pixels of a sample, of values [N, H, W].
VarId sums_of_samples(TaskBuilder& task, VarId values, const std::string& prefix) {
  const Shape mask = task.var(values).shape;
  const VarId map =
      task.emit("reshape", {values}, {{"shape", std::vector<int64_t>{0, 1, mask[1], mask[2]}}},
                prefix + "maps");
  const VarId mean = task.emit("pool2d", {map}, {{"type", std::string("avg")}, {"global", true}},
                               prefix + "means");
  const VarId flat =
      task.emit("reshape", {mean}, {{"shape", std::vector<int64_t>{mask[0]}}}, prefix + "flat");
  return task.emit("scale", {flat}, {{"scale", static_cast<double>(mask[1] * mask[2])}},
                   prefix + "sums");
}

// float32 [N]: the mean over the labelled pixels of a sample, 0 without any. With class weights the
// sums over them, of the weighted losses and of the weights.
SampleLosses sample_losses(TaskBuilder& task, VarId rows, VarId labels, const std::string& prefix) {
  const Attributes attributes = {{"label_smoothing", task.settings().number("label_smoothing")},
                                 {"ignore_index", kUnlabelledPixel}};
  if (task.context().options.class_weights) {
    const auto both =
        task.emit_all("weighted_cross_entropy", {rows, labels, task.feed("class_weights")},
                      attributes, {prefix + "pixel_losses", prefix + "weights_of_pixels"});
    return {sums_of_samples(task, both[0], prefix + "loss_"),
            sums_of_samples(task, both[1], prefix + "weight_")};
  }
  const VarId losses = task.emit_all("softmax_with_cross_entropy", {rows, labels}, attributes,
                                     {prefix + "pixel_losses"})[0];
  const Shape mask = task.var(labels).shape;
  const VarId labelled = task.emit("clip", {task.feed("labelled_pixels")},
                                   {{"min", 1.0}, {"max", static_cast<double>(mask[1] * mask[2])}},
                                   prefix + "counted_pixels");
  return {task.emit("elementwise_div", {sums_of_samples(task, losses, prefix + "loss_"), labelled},
                    {}, prefix + "sample_losses")};
}

void build_pixels(TaskBuilder& task) {
  const VarId labels =
      task.emit("cast", {task.feed("mask")}, {{"to", std::string("int64")}}, "labels");
  const VarId weight = task.feed("weight"), rows = with_classes_last(task, "pixel_logits");
  const SampleLosses losses = sample_losses(task, rows, labels, "");
  task.add_sums("losses", {"loss", "weight"}, "weighted_sum", {losses.values, weight});
  if (losses.weights != kNoVar) {
    task.add_sums("pixel_weights", {"pixel_weights", "weighted_samples"}, "weighted_sum",
                  {losses.weights, weight});
  }
  const Shape mask = task.var(labels).shape;
  const VarId ones = task.emit(
      "fill", {}, {{"shape", std::vector<int64_t>{mask[0], mask[1], mask[2]}}, {"value", 1.0}},
      "every_pixel");
  task.add_sums("counts", {"hits", "top_hits", "all"}, "accuracy", {rows, labels, ones},
                {{"k", int64_t{1}}});
  task.add_sums("labelled", {"pixels", "samples"}, "weighted_sum",
                {task.feed("labelled_pixels"), weight});
  if (!task.training()) return;
  VarId all = losses.values;
  if (has_auxiliary(task.context())) {
    const VarId own =
        sample_losses(task, with_classes_last(task, kAuxLogits), labels, "aux_").values;
    const VarId scaled = task.emit(
        "scale", {own}, {{"scale", task.settings().number("aux_weight")}}, "weighted_aux_losses");
    all = task.emit("elementwise_add", {all, scaled}, {}, "losses_with_aux");
  }
  const bool weighs = task.context().options.class_weights;
  task.set_loss(divided_loss(task, all, weight, weighs ? kPixelWeights : "sample_denominator"));
}

}  // namespace

FLEET_TASK(segmentation) {
  def.help = "a class of each pixel of an image: cross entropy, pixel accuracy, mean IoU";
  def.schema
      .number("aux_weight", 0.5, 0, 100,
              "factor of the auxiliary head's loss (model.aux); 0: the head is not trained")
      .boolean("evaluate_classes", false,
               "write the pixels, accuracy and IoU of each class to metrics.jsonl, and "
               "evaluation.json and confusion_matrix.csv next to it, for fleetrun report");
  label_smoothing_key(&def.schema);
  class_weights_keys(&def.schema);
  metrics_key(&def.schema, MetricInput::kPixels, {});
  def.outputs = {"pixel_logits"};
  def.more_outputs = [](const TaskContext& context) -> std::vector<std::string> {
    if (!has_auxiliary(context)) return {};
    return {kAuxLogits};
  };
  def.feeds = pixel_feeds;
  def.metrics = pixel_table;
  def.build = build_pixels;
  def.collector = [](const TaskContext& context) -> std::unique_ptr<EvaluationCollector> {
    return std::make_unique<PixelMetrics>(context.classes(), registered_metrics(context),
                                          context.settings().boolean("evaluate_classes"));
  };
  def.decoder = pixel_decoder;
}

}  // namespace fleet
