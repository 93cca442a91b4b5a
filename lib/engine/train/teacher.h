// The teacher of a job that distils (train.distillation): its network is appended to the training
// step as an evaluation computes it, without gradients, and its weights are states that
// neither the optimizer nor a checkpoint has.
#pragma once

#include "exec/executor.h"
#include "models/training.h"
#include "train/job.h"
#include "train/session.h"

namespace fleet {

struct Teacher {
  std::string weights;  // a file or folder
  std::string model;
  Settings settings;              // the model's
  std::vector<double> mean, std;  // one per channel of its images
  bool guessed = false;           // nothing says what these were
};

// Whether the job's training has a teacher. False for evaluations alone.
bool has_teacher(const Job& job);
// Reads the weights' record. kUsage if they do not exist, have other classes, belong to a
// network without images, or do not tell their network; errors of find_record().
Teacher teacher_of(const Job& job);

// Appends the network and the loss to the section forward.
void append_teacher(Program& program, const Job& job, const Teacher& teacher, Training* training);

// Like append_teacher(), for the job's teacher, with lines on rank 0; without one, appends nothing.
// kUsage with a pipeline.
void distil(const Job& job, const ProgramOptions& options, BuiltProgram* built);

// Checks names and shapes of the weights without reading values. image: its channels, height and
// width. kUsage naming the weights if they do not fit.
void check_teacher(const Teacher& teacher, const Shape& image);
// Writes the teacher's weights to the executor. Every rank reads them itself. Returns lines about
// changed content; errors of check_teacher().
std::vector<std::string> load_teacher(const Teacher& teacher, const Shape& image,
                                      Executor& executor);

}  // namespace fleet
