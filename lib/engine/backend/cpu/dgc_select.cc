#include <algorithm>
#include <bit>
#include <memory>

#include "backend/cpu/elementwise.h"
#include "backend/cpu/top_k.h"
#include "ops/dgc.h"

namespace fleet {
namespace {

using cpu::TopK;

struct DgcSelectConstants {
  float scale, momentum, decay;
};

struct Tensor {
  const float *parameter, *gradient, *scale;
  float *velocity, *residual;
  int64_t sent;
  float decay;
  int32_t* encoded;
};

// Adds up a stretch that begins at a tile boundary; stores the largest magnitude of each tile.
template <bool nesterov, bool decays>
FLEET_INLINE void accumulate(const Tensor& t, int64_t begin, int64_t end, DgcSelectConstants k,
                             uint32_t* maxima) {
  for (int64_t tile = begin; tile < end; tile += TopK::kTile) {
    const float *p = t.parameter + tile, *g = t.gradient + tile;
    float *u = t.velocity + tile, *v = t.residual + tile;
    const int64_t count = std::min(TopK::kTile, end - tile);
    uint32_t largest = 0;
#pragma omp simd reduction(max : largest)
    for (int64_t i = 0; i < count; ++i) {
      const float d = g[i] * k.scale + (decays ? k.decay * p[i] : 0);
      const float velocity = nesterov ? k.momentum * (u[i] + d) : k.momentum * u[i] + d;
      const float residual = v[i] + velocity + (nesterov ? d : 0);
      u[i] = velocity;
      v[i] = residual;
      const uint32_t number = std::bit_cast<uint32_t>(residual) & cpu::kMagnitude;
      largest = largest > number ? largest : number;
    }
    maxima[tile / TopK::kTile] = largest;
  }
}

FLEET_SIMD void plain(const Tensor& t, int64_t begin, int64_t end, DgcSelectConstants k,
                      uint32_t* maxima) {
  accumulate<false, false>(t, begin, end, k, maxima);
}
FLEET_SIMD void decaying(const Tensor& t, int64_t begin, int64_t end, DgcSelectConstants k,
                         uint32_t* maxima) {
  accumulate<false, true>(t, begin, end, k, maxima);
}
FLEET_SIMD void with_nesterov(const Tensor& t, int64_t begin, int64_t end, DgcSelectConstants k,
                              uint32_t* maxima) {
  accumulate<true, true>(t, begin, end, k, maxima);
}

// The attributes, and the memory of a step.
struct Select {
  explicit Select(const KernelContext& context)
      : factor(static_cast<float>(context.attributes().number("gradient_factor"))),
        momentum(static_cast<float>(context.attributes().number("momentum"))),
        nesterov(context.attributes().boolean("use_nesterov")) {
    const auto& counts = context.attributes().integers("counts");
    const auto& decays = context.attributes().numbers("weight_decays");
    int32_t* encoded = context.outputs[0].as<int32_t>();
    std::vector<TopK::Tensor> residuals;
    for (size_t i = 0; i < counts.size(); ++i) {
      const int group = static_cast<int>(i), scale = DgcGroups::scale(group);
      const Argument& parameter = context.inputs[DgcGroups::parameter(group)];
      tensors.push_back({.parameter = parameter.as<float>(),
                         .gradient = context.inputs[DgcGroups::gradient(group)].as<float>(),
                         .scale = context.inputs[scale].as<float>(),
                         .velocity = context.outputs[DgcGroups::velocity_out(group)].as<float>(),
                         .residual = context.outputs[DgcGroups::residual_out(group)].as<float>(),
                         .sent = counts[i],
                         .decay = static_cast<float>(decays[i]),
                         .encoded = encoded});
      FLEET_CHECK(context.inputs[DgcGroups::velocity(group)].data == tensors.back().velocity &&
                      context.inputs[DgcGroups::residual(group)].data == tensors.back().residual,
                  "dgc_select works in place");
      residuals.push_back({.x = tensors.back().residual,
                           .count = parameter.layout.elements(),
                           .k = counts[i],
                           .places = encoded});
      encoded += 2 * counts[i];
    }
    largest = std::make_shared<TopK>(std::move(residuals));
  }

  void operator()(Stream&) const {
    const std::vector<TopK::Piece>& pieces = largest->pieces();
#pragma omp parallel for if (pieces.size() > 1)
    for (size_t i = 0; i < pieces.size(); ++i) add_up(pieces[i]);
    largest->select();
#pragma omp parallel for schedule(dynamic, 1) if (pieces.size() > tensors.size())
    for (size_t i = 0; i < tensors.size(); ++i) take_out(tensors[i]);
  }

 private:
  void add_up(const TopK::Piece& piece) const {
    const Tensor& tensor = tensors[piece.tensor];
    const DgcSelectConstants k{tensor.scale ? factor * *tensor.scale : factor, momentum,
                               tensor.decay};
    const auto rule = nesterov ? with_nesterov : tensor.decay != 0 ? decaying : plain;
    rule(tensor, piece.begin, piece.end, k, largest->maxima(piece.tensor));
  }

  // Writes the values after their indices, and clears the residual of sent elements.
  static void take_out(const Tensor& tensor) {
    const int32_t* places = tensor.encoded;
    int32_t* values = tensor.encoded + tensor.sent;
    for (int64_t i = 0; i < tensor.sent; ++i) {
      float &velocity = tensor.velocity[places[i]], &residual = tensor.residual[places[i]];
      values[i] = std::bit_cast<int32_t>(residual);
      velocity = 0;
      residual = 0;
    }
  }

  float factor, momentum;
  bool nesterov;
  std::vector<Tensor> tensors;
  std::shared_ptr<TopK> largest;
};

}  // namespace

FLEET_KERNEL(cpu, dgc_select) {
  def.layouts = DgcGroups::lay_out<LayoutQuery>;
  def.create = [](KernelContext& context) { return make_kernel(Select(context)); };
}

}  // namespace fleet
