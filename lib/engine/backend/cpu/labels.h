// Labels, as kernels of losses read them.
#pragma once

#include "exec/kernel.h"

namespace fleet::cpu {

struct Labels {
  const int64_t* label = nullptr;
  int64_t samples = 0, classes = 0, ignore_index = 0;

  Labels() = default;
  // x: [..., classes]
  Labels(const KernelContext& context, const Argument& x, const Argument& labels)
      : label(labels.as<int64_t>()),
        samples(labels.shape.elements()),
        classes(x.shape[x.shape.rank() - 1]),
        ignore_index(context.attributes().integer("ignore_index")) {}

  bool ignored(int64_t sample) const { return label[sample] == ignore_index; }
  // kUsage if a label is outside the classes.
  void check(const char* op) const {
    for (int64_t n = 0; n < samples; ++n) {
      if (!ignored(n)) check_one(n, op);
    }
  }
  void check_one(int64_t n, const char* op) const {
    if (label[n] >= 0 && label[n] < classes) return;
    throw Error(ErrorCode::kUsage,
                "label " + std::to_string(label[n]) + " of sample " + std::to_string(n) +
                    " of the batch is not one of the " + std::to_string(classes) + " classes",
                op, "check the labels of the data and the number of classes of the model");
  }
};

}  // namespace fleet::cpu
