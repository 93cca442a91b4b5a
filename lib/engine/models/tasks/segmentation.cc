// segmentation: a class of each pixel of an image; cross entropy of the pixels that have one.
//
// mask [N, H, W] has the classes, 255 where there is none, and labelled_pixels [N] the number of
// pixels that have one. The loss of a sample is the mean over those pixels, and the loss of a step
// the mean over the samples of the whole update that pad no batch: every rank knows their number
// before the step, so the ranks do not matter. (torchvision takes the mean over the labelled pixels
// of a rank's batch, which weighs an image by its labelled pixels, and depends on the ranks.)
#include "base/error.h"
#include "models/pixel_metrics.h"
#include "models/predicted_pixels.h"
#include "models/task.h"
#include "models/weighted_loss.h"

namespace fleet {
namespace {

constexpr const char* kAuxLogits = "aux_logits";

bool has_auxiliary(const TaskContext& context) {
  return context.model().has("aux") && context.model().boolean("aux") &&
         context.settings().number("aux_weight") > 0;
}

std::vector<FeedDef> pixel_feeds(const TaskContext& context) {
  const int64_t classes = context.classes();
  if (classes > kUnlabelledPixel) {
    throw Error(ErrorCode::kUsage,
                std::to_string(classes) + " classes, and a mask of bytes has at most 255",
                "model.num_classes", "set it to at most 255");
  }
  return {{"mask", DType::kUInt8, context.shape("mask")},
          {"labelled_pixels", DType::kFloat32, context.shape("labelled_pixels")},
          {"weight", DType::kFloat32, {context.batch()}},
          {"sample_denominator", DType::kFloat32, {1}, true, false}};
}

MetricTable pixel_table(const TaskContext&) {
  MetricTable table{.sums = {"loss", "weight", "hits", "top_hits", "all", "pixels", "samples"},
                    .headline = "mIoU",
                    .items = "weight"};
  table.metrics = {
      {.name = "loss", .sum = "loss", .divisor = "weight"},
      {.name = "pixel_accuracy", .sum = "hits", .divisor = "pixels", .larger_is_better = true},
      {.name = "mIoU", .larger_is_better = true, .collected = true}};
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

// float32 [N]: the mean over the labelled pixels of a sample, 0 without any.
VarId sample_losses(TaskBuilder& task, VarId rows, VarId labels, const std::string& prefix) {
  const Shape mask = task.var(labels).shape;
  const int64_t pixels = mask[1] * mask[2];
  const VarId losses =
      task.emit_all("softmax_with_cross_entropy", {rows, labels},
                    {{"label_smoothing", task.settings().number("label_smoothing")},
                     {"ignore_index", kUnlabelledPixel}},
                    {prefix + "pixel_losses"})[0];
  const VarId map =
      task.emit("reshape", {losses}, {{"shape", std::vector<int64_t>{0, 1, mask[1], mask[2]}}},
                prefix + "loss_maps");
  const VarId mean = task.emit("pool2d", {map}, {{"type", std::string("avg")}, {"global", true}},
                               prefix + "loss_means");
  const VarId flat = task.emit("reshape", {mean}, {{"shape", std::vector<int64_t>{mask[0]}}},
                               prefix + "flat_losses");
  const VarId sum =
      task.emit("scale", {flat}, {{"scale", static_cast<double>(pixels)}}, prefix + "loss_sums");
  const VarId labelled =
      task.emit("clip", {task.feed("labelled_pixels")},
                {{"min", 1.0}, {"max", static_cast<double>(pixels)}}, prefix + "counted_pixels");
  return task.emit("elementwise_div", {sum, labelled}, {}, prefix + "sample_losses");
}

void build_pixels(TaskBuilder& task) {
  const VarId labels =
      task.emit("cast", {task.feed("mask")}, {{"to", std::string("int64")}}, "labels");
  const VarId weight = task.feed("weight"), rows = with_classes_last(task, "pixel_logits");
  const VarId losses = sample_losses(task, rows, labels, "");
  task.add_sums("losses", {"loss", "weight"}, "weighted_sum", {losses, weight});
  const Shape mask = task.var(labels).shape;
  const VarId ones = task.emit(
      "fill", {}, {{"shape", std::vector<int64_t>{mask[0], mask[1], mask[2]}}, {"value", 1.0}},
      "every_pixel");
  task.add_sums("counts", {"hits", "top_hits", "all"}, "accuracy", {rows, labels, ones},
                {{"k", int64_t{1}}});
  task.add_sums("labelled", {"pixels", "samples"}, "weighted_sum",
                {task.feed("labelled_pixels"), weight});
  if (!task.training()) return;
  VarId all = losses;
  if (has_auxiliary(task.context())) {
    const VarId own = sample_losses(task, with_classes_last(task, kAuxLogits), labels, "aux_");
    const VarId scaled = task.emit(
        "scale", {own}, {{"scale", task.settings().number("aux_weight")}}, "weighted_aux_losses");
    all = task.emit("elementwise_add", {losses, scaled}, {}, "losses_with_aux");
  }
  task.set_loss(divided_loss(task, all, weight, "sample_denominator"));
}

}  // namespace

FLEET_TASK(segmentation) {
  def.help = "a class of each pixel of an image: cross entropy, pixel accuracy, mean IoU";
  def.schema
      .number("aux_weight", 0.5, 0, 100,
              "factor of the auxiliary head's loss (model.aux); 0: the head is not trained")
      .number("label_smoothing", 0, 0, 1, "amount of label smoothing in the loss")
      .boolean("evaluate_classes", false,
               "write the pixels, accuracy and IoU of each class to metrics.jsonl, and "
               "confusion_matrix.csv next to it");
  def.outputs = {"pixel_logits"};
  def.more_outputs = [](const TaskContext& context) -> std::vector<std::string> {
    if (!has_auxiliary(context)) return {};
    return {kAuxLogits};
  };
  def.feeds = pixel_feeds;
  def.metrics = pixel_table;
  def.build = build_pixels;
  def.collector = [](const TaskContext& context) -> std::unique_ptr<EvaluationCollector> {
    return std::make_unique<PixelMetrics>(context.classes(),
                                          context.settings().boolean("evaluate_classes"));
  };
  def.decoder = pixel_decoder;
}

}  // namespace fleet
