#include <algorithm>

#include "backend/cpu/elementwise.h"

namespace fleet {
namespace {

void check_label(int64_t label, int64_t sample, int64_t classes) {
  if (label >= 0 && label < classes) return;
  throw Error(ErrorCode::kUsage,
              "label " + std::to_string(label) + " of sample " + std::to_string(sample) +
                  " of the batch is not one of the " + std::to_string(classes) + " classes",
              "label_distribution",
              "check the labels of the data and the number of classes of the model");
}

}  // namespace

FLEET_KERNEL(cpu, label_distribution) {
  def.create = [](KernelContext& context) {
    const bool mixed = context.inputs.size() > 2 && context.inputs[1].data;
    const int64_t* label = context.inputs[0].as<int64_t>();
    const int64_t* other = mixed ? context.inputs[1].as<int64_t>() : nullptr;
    const float* own_share = mixed ? context.inputs[2].as<float>() : nullptr;
    float *target = context.outputs[0].as<float>(), *counted = context.outputs[1].as<float>();
    const int64_t samples = context.outputs[0].shape[0], classes = context.outputs[0].shape[1];
    const int64_t ignored = context.attributes().integer("ignore_index");
    const double smoothing = context.attributes().number("label_smoothing");
    const auto rest = static_cast<float>(smoothing / static_cast<double>(classes));
    const auto on = static_cast<float>(1 - smoothing);
    return make_kernel([=](Stream&) {
      for (int64_t n = 0; n < samples; ++n) {
        float* row = target + n * classes;
        const float share = mixed ? own_share[n] : 1;
        const float own = label[n] == ignored ? 0 : share;
        const float others = !mixed || other[n] == ignored ? 0 : 1 - share;
        counted[n] = own + others;
        std::fill_n(row, classes, counted[n] > 0 ? rest : 0.0f);
        if (label[n] != ignored) check_label(label[n], n, classes);
        if (mixed && other[n] != ignored) check_label(other[n], n, classes);
        if (own > 0) row[label[n]] += on * own / counted[n];
        if (others > 0) row[other[n]] += on * others / counted[n];
      }
    });
  };
}

}  // namespace fleet
