#include "backend/cpu/image_layout.h"

#include "base/env.h"

namespace fleet::cpu {
namespace {

// Whether oneDNN chooses AMX for an ordinary convolution of this type.
bool prefers_amx(DType type) {
  const Shape image{2, 64, 28, 28}, weight{64, 64, 3, 3};
  const auto any = dnnl::memory::format_tag::any;
  const auto desc_of = [&](const Shape& shape) {
    return dnnl::memory::desc(dnnl::memory::dims(shape.begin(), shape.end()), type_of(type), any);
  };
  const dnnl::convolution_forward::desc desc(
      dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, desc_of(image),
      desc_of(weight), desc_of(image), {1, 1}, {1, 1}, {1, 1});
  const dnnl::convolution_forward::primitive_desc chosen(desc, engine(), /*allow_empty=*/true);
  return chosen && uses_amx(implementation_of(chosen));
}

}  // namespace

bool uses_amx(const std::string& implementation) {
  return implementation.find("amx") != std::string::npos;
}

bool has_amx(DType type) {
  static const bool bfloat16 =
      translated("a bfloat16 convolution", [] { return prefers_amx(DType::kBFloat16); });
  return bfloat16 && type == DType::kBFloat16;
}

bool prefers_channels_last(DType type) {
  if (const auto wanted = get_env("FLEET_IMAGE_LAYOUT")) {
    if (*wanted == "channels_last") return true;
    if (*wanted == "blocks") return false;
    throw Error(ErrorCode::kUsage, "unknown layout of images '" + *wanted + "'",
                "FLEET_IMAGE_LAYOUT", "set it to channels_last or blocks");
  }
  return has_amx(type);
}

std::vector<ConvolutionLayouts> with_preferred(const Convolution& conv,
                                               const std::optional<Layout>& weight,
                                               std::vector<ConvolutionLayouts> candidates) {
  if (!prefers_channels_last(conv.type)) return candidates;
  const Layout x = Layout::channels_last(conv.x), y = Layout::channels_last(conv.y);
  candidates.insert(candidates.begin(), {{x, weight, y}, {x, std::nullopt, y}});
  return candidates;
}

}  // namespace fleet::cpu
