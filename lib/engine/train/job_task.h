// Declarations of a job's task, model and data, for the parts of training that depend on them.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "data/pipeline.h"
#include "models/training.h"
#include "tensor/column.h"
#include "train/job.h"

namespace fleet {

// model.num_classes, or those of an encoder's config.json; 0 for a model without classes.
int64_t classes_of(const Job& job);
// train.ignore_index: samples with this label have a loss of 0. -100 for a task without the key.
int64_t ignored_label(const Job& job);

// The columns of a pipeline's batches, "image" as normalised floats.
std::vector<Column> columns_of(const data::InputPipeline& pipeline);
// The columns of the training data as far as the job's settings tell, without opening data.
// image: height, width and channels that are known; the model's for those that are 0.
std::vector<Column> expected_columns(const Job& job, const data::ImageShape& image);
std::vector<Column> expected_columns(const Job& job);  // with the sizes of data.image
// The sizes of an image in these columns; empty without one.
Shape image_of_columns(const std::vector<Column>& columns);

// Whether the job mixes images (mixup, cutmix), so that samples have two labels.
bool mixes_samples(const Job& job);

// The model's outputs that the job reads (models/task.h).
std::set<std::string> outputs_of(const Job& job);

// kUsage, naming what fits, if model, task and data source of the job do not go together. Opens no
// data.
void check_task(const Job& job);

// Options of build_training() for a job.
//   columns  of its data
//   bytes    images are fed as bytes
TrainingOptions training_options(const Job& job, int64_t batch, std::vector<Column> columns,
                                 bool bytes);

}  // namespace fleet
