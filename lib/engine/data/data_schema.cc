// The keys of the job file's "data" section.
#include "base/config.h"
#include "data/augment.h"
#include "data/filter.h"
#include "data/pipeline.h"
#include "data/reader_tuner.h"
#include "data/source.h"

namespace fleet::data {

Schema data_schema(const std::string& source) {
  const SourceType& type = sources().get(source);
  Schema image;
  image
      .integer("channels", 0, 0, 4,
               "Number of channels: 1 for grey, 3 for RGB; 0: that of the first image, but 3 for "
               "encoded images (PNG, JPEG), grey ones too")
      .integer("height", 0, 0, 65536, "Height in pixels; 0: that of the first image")
      .integer("width", 0, 0, 65536, "Width in pixels; 0: that of the first image");
  Schema schema;
  schema.choice("source", source, sources().names(), "Source of the samples")
      .text("root", "", "Base folder of relative paths")
      .as_path()
      .integer("batch_size", 32, 1, 1e6, "Samples per rank and step")
      .integer(
          "global_batch_size", 0, 0, 1e9,
          "Samples of all ranks per step, instead of data.batch_size; each rank takes its share, "
          "so that results do not depend on the number of ranks; 0: use data.batch_size")
      .integer("threads", 0, 0, kMaxReaderThreads,
               "Worker threads per rank; 0: one for each of its cores")
      .integer("prefetch", 2, 1, 1024, "Number of batches to prepare ahead of training")
      .boolean("auto.threads", false,
               "Start with one thread and add more while training waits for input, if that makes "
               "it faster; data.threads=auto is the short form")
      .boolean("auto.prefetch", false,
               "Prepare more batches ahead, up to 8, while training waits for input, if that makes "
               "it faster; data.prefetch=auto is the short form")
      .boolean("async", true,
               "Prepare batches ahead of time on worker threads; false: on demand. "
               "data.reader=async and data.reader=sync mean the same")
      .choice("cache", "none", {"none", "decoded"},
              "Keep decoded images in memory, as many as fit. Each image is then decoded as a "
              "whole and at full size: the first epoch is slower, and pixels of large JPEGs differ "
              "slightly")
      .integer("cache_memory", 0, 0, 1e9,
               "MiB of this cache per rank, for training images and again for test images; 0: a "
               "third of the free memory, divided by the ranks of the node")
      .boolean("shuffle", true, "Train in a new random order in each epoch")
      .choice(
          "sampling", "all", {"all", "balanced"},
          "Samples of an epoch: every sample once, or the same number of draws with replacement, "
          "with equal probability for each class")
      .number("validation_split", 0, 0, 0.9,
              "Fraction of each class's training samples, or of the documents of a text, used for "
              "evaluation instead of training; 0: none")
      .integer("validation_seed", 1, 0, 9e15,
               "Seed for choosing the samples of data.validation_split")
      .integer("repeats", 1, 1, 1000,
               "Repeated augmentation: number of consecutive copies of each sample, each augmented "
               "differently (usual: 3). An epoch keeps its length: with x copies, it has 1/x of "
               "the samples, each x times")
      .integers("lengths", {},
                "Lengths of rows of tokens, ascending to data.sequence_length: batches of similar "
                "samples have the shortest rows that all samples of the global batch fit into; "
                "each length has a plan of its own. Without data.shuffle, and in evaluation, "
                "samples come in the order of these lengths. []: all rows have "
                "data.sequence_length tokens")
      .choice("tail", "pad", {"pad", "drop"},
              "Treatment of an epoch's last, partial batch: pad it with samples of weight 0 in "
              "metrics, or drop it")
      .choice("on_damaged", "skip", {"skip", "fail"},
              "Action for an image that is damaged or cannot be read: replace it with the next one "
              "and log a warning, or end the job. An image of another size always ends it. Rows of "
              "labelled texts and of clicks that cannot be used are left out, or end the job")
      .number(
          "read_timeout", 60, 0, 1e6,
          "Seconds after which a file that is still being read counts as damaged, and for which a "
          "job waits for data that cannot be read any longer; 0: without limit")
      .section("image", image)
      .choice("pixels", "auto", {"auto", "float32", "uint8"},
              "Format of batches for the device: normalised floats, or bytes that the device "
              "normalises; auto: floats on the CPU, bytes on a GPU")
      .choice("interpolation", "float_bilinear", filter_names(),
              "Filter that resizes images. 'float_bilinear' keeps fractions of pixel values; the "
              "others have the pixels of Pillow, bit for bit: torchvision's and timm's "
              "preprocessing on images")
      .choice(
          "pass_order", "pillow13", {"pillow13", "pillow12"},
          "Which Pillow the exact filters follow: from 13.0 on, much of a tall image is resized "
          "down before across, which changes a few pixels")
      .choice("exif", "ignore", {"ignore", "apply"},
              "Whether to turn and mirror a JPEG as its camera has noted (EXIF orientation); "
              "torchvision and timm ignore the note")
      .texts("class_names", {},
             "Names of the classes, in the order of their labels; class folders define their own. "
             "Checkpoints store them")
      .numbers("mean", {0},
               "Mean to subtract from pixel values in [0, 1]; one value, or one per channel")
      .numbers("std", {1},
               "Standard deviation to divide by after that; one value, or one per channel")
      .section("augment", augment_schema(true))
      .section("eval", augment_schema(false))
      .section("", type.shared ? type.shared() : Schema())
      .section("train", type.schema(true))
      .section("test", type.schema(false));
  return schema;
}

}  // namespace fleet::data
