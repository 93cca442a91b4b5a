// The keys "predict.*" of a job.
#include "train/predict.h"

namespace fleet {

Schema predict_schema() {
  return Schema()
      .texts("input", {},
             "predict these images, folders of images or lists of them (.txt), or these files of "
             "texts (.jsonl, .tsv, .csv, or .txt with a text a line; for labels of words and for "
             "questions, files as for training, without labels), instead of training; the short "
             "form is --predict")
      .as_path()
      .text("checkpoint", "auto",
            "weights to predict with: a checkpoint's folder, a file of weights, or \"auto\": those "
            "of checkpoint.resume, or else the newest checkpoint of the job, or else those of "
            "checkpoint.weights")
      .as_path()
      .text("output", "predictions.jsonl",
            "output file, one line per image or text; \"-\": standard output; for classes of "
            "pixels a folder, \"masks\" by default, of a PNG for each image and the file of lines")
      .as_path()
      .choice(
          "format", "auto", {"auto", "jsonl", "csv", "npy"},
          "format of the output: JSON lines, CSV, or an array of NumPy (float32, a row for each "
          "sample: probabilities of all classes, predicted numbers, or embeddings); auto: by the "
          "output's name, which ends in .csv or .npy, else JSON lines")
      .choice(
          "embedding", "none", {"none", "cls", "mean", "features"},
          "write an embedding of each sample in place of the task's prediction: of a text the "
          "last hidden state of its first token (cls), or the mean over its tokens; of an image "
          "the input of the last fully connected layer (features)")
      .choice("average", "none", {"none", "flip", "five_crop", "ten_crop"},
              "average the predictions of an image over views of it: the image and its mirror "
              "image (flip), the corners and the centre of the resized image (five_crop), or "
              "these and their mirror images (ten_crop)")
      .text("cam", "",
            "folder for class activation maps (Grad-CAM) of the predicted classes, a PNG for each "
            "image; \"\": none")
      .as_path()
      .integer("cam_class", -1, -1, 1e6, "class of these maps; -1: that of each prediction")
      .choice("cam_style", "overlay", {"overlay", "map"},
              "the map in colours over the image, or the map alone in grey")
      .boolean("normalize", false, "scale embeddings to length 1")
      .integer("top_k", 5, 1, 1e6, "number of most likely classes, or answers, per line");
}

}  // namespace fleet
